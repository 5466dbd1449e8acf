import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { type Any, anyIs, anyUnpack, durationMs } from "@bufbuild/protobuf/wkt";
import { type ServiceError, status } from "@grpc/grpc-js";
import { type Ask, AskSchema } from "./crewd/v1/ask_pb.js";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "./google/rpc/error_details_pb.js";
import { StatusSchema } from "./google/rpc/status_pb.js";

/** A gRPC status code by its name, such as `"NOT_FOUND"`. */
export type Code = keyof typeof status;

/** One thing that is wrong with a request: the field's path, and why. */
export type Violation = { readonly field: string; readonly description: string };

/** Why something failed. Branch on `reason`, or on `code` if there is none or you do not know it. */
export class CrewdError extends Error {
  override readonly name = "CrewdError";
  readonly code: Code;
  /** A value of `crewd.v1.ErrorReason` without its prefix, such as `"RUN_NOT_FOUND"`, or empty. */
  readonly reason: string = "";
  /** The particulars of the reason. */
  readonly metadata: Readonly<Record<string, string>> = {};
  /** What is wrong with the request. */
  readonly violations: readonly Violation[] = [];
  /** With ASK_SETTLED: how it was settled. */
  readonly ask: Ask | undefined;
  /** The milliseconds after which the daemon wants to be asked again, if it said so. */
  readonly retryAfter: number | undefined;

  constructor(code: Code, message: string, details: Partial<CrewdError> = {}) {
    super(message || details.reason || code);
    this.code = code;
    Object.assign(this, details);
  }
}

/** Makes an error of ours of a failed call's status and details. */
export function translate({ code, details: message, metadata }: ServiceError): CrewdError {
  const [bytes] = metadata.get("grpc-status-details-bin") as Buffer[];
  const details = (bytes && ifReadable(() => fromBinary(StatusSchema, bytes).details)) ?? [];
  const info = find(details, ErrorInfoSchema);
  const violations = find(details, BadRequestSchema)?.fieldViolations ?? [];
  const retryDelay = find(details, RetryInfoSchema)?.retryDelay;
  // "(5 vs. 4)" the daemon's gRPC says of a request; "(5 vs 4)" says that of this side of an answer.
  const isTooLarge = code === status.RESOURCE_EXHAUSTED && / than max \(\d+ vs\. /.test(message);
  const reason = info?.domain === "crewd" ? info.reason : "";
  return new CrewdError(status[code] as Code, message, {
    reason: isTooLarge && !info ? "REQUEST_TOO_LARGE" : reason,
    metadata: info?.metadata ?? {},
    violations: violations.map(({ field, description }) => ({ field, description })),
    ask: find(details, AskSchema),
    retryAfter: retryDelay && durationMs(retryDelay),
  });
}

/** Gives nothing for what cannot be read, where there is a rule for going on without it. */
export function ifReadable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function find<D extends DescMessage>(details: Any[], schema: D): MessageShape<D> | undefined {
  const detail = details.find((each) => anyIs(each, schema));
  return detail && ifReadable(() => anyUnpack(detail, schema));
}
