import { type DescMessage, fromBinary } from "@bufbuild/protobuf";
import { anyUnpack, durationMs } from "@bufbuild/protobuf/wkt";
import { type ServiceError, status } from "@grpc/grpc-js";
import { type Ask, AskSchema } from "./crewd/v1/ask_pb.js";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./google/rpc/error_details_pb.js";
import { StatusSchema } from "./google/rpc/status_pb.js";

/** A failed call. Branch on `reason` (of `crewd.v1.ErrorReason`, without prefix), then on `code`. `retryAfter`: ms. */
export class CrewdError extends Error {
  override readonly name = "CrewdError";
  readonly reason: string = "";
  readonly metadata: Readonly<Record<string, string>> = {};
  readonly violations: readonly { field: string; description: string }[] = [];
  declare readonly ask?: Ask;
  declare readonly retryAfter?: number;

  constructor(readonly code: keyof typeof status, message: string, details: Partial<CrewdError> = {}) {
    super(message || details.reason || code);
    Object.assign(this, details);
  }
}

/** Turns a failed call's status and details into an error of ours. */
export function translate({ code, details: message, metadata }: ServiceError): CrewdError {
  const [bytes] = metadata.get("grpc-status-details-bin") as Buffer[];
  const details = (bytes && attempt(() => fromBinary(StatusSchema, bytes).details)) ?? [];
  const find = <D extends DescMessage>(schema: D) =>
    details.map((each) => attempt(() => anyUnpack(each, schema))).find((found) => found !== undefined);
  const [info, ask, wait] = [find(ErrorInfoSchema), find(AskSchema), find(RetryInfoSchema)?.retryDelay];
  // So the daemon's gRPC refuses a request; the gRPC of this side says of an answer "(5 vs 4)".
  const tooLarge = !info && code === status.RESOURCE_EXHAUSTED && / larger than max \(\d+ vs\. /.test(message);
  return new CrewdError(status[code] as keyof typeof status, message, {
    reason: tooLarge ? "REQUEST_TOO_LARGE" : info?.domain === "crewd" ? info.reason : "",
    violations: find(BadRequestSchema)?.fieldViolations.map(({ field, description }) => ({ field, description })) ?? [],
    metadata: info?.metadata ?? {}, ...(ask && { ask }), ...(wait && { retryAfter: durationMs(wait) }) });
}

/** Gives nothing for what cannot be read, where there is a rule for going on without it. */
export const attempt = <T>(read: () => T): T | undefined => { try { return read(); } catch { return undefined; } };
