import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { Metadata, type ServiceError, type status } from "@grpc/grpc-js";

type Details = typeof import("../../dist/google/rpc/error_details_pb.js");
type Status = typeof import("../../dist/google/rpc/status_pb.js");

// The package does not export them: they are how errors travel.
const load = (name: string) =>
  import(new URL(`../../../dist/google/rpc/${name}`, import.meta.url).href);
const { StatusSchema } = (await load("status_pb.js")) as Status;
export const { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } = (await load(
  "error_details_pb.js",
)) as Details;

export type Detail = ReturnType<typeof detail>;

export function detail<D extends DescMessage>(schema: D, init: MessageInitShape<D>) {
  return anyPack(schema, create(schema, init));
}

/** A reason of the daemon, as it travels. */
export function because(reason: string, metadata: Record<string, string> = {}): Detail {
  return detail(ErrorInfoSchema, { reason, domain: "crewd", metadata });
}

/** An error as the daemon's gRPC sends it. */
export function refusal(code: status, details: string, ...told: Detail[]): ServiceError {
  const metadata = new Metadata();
  const bytes = toBinary(
    StatusSchema,
    create(StatusSchema, { code, message: details, details: told }),
  );
  if (told.length > 0) metadata.set("grpc-status-details-bin", Buffer.from(bytes));
  return Object.assign(new Error(details), { code, details, metadata });
}
