import * as es from "@bufbuild/protobuf";
import { attempt, CrewdError } from "./errors.js";

const TYPES: Record<string, string> = { STRING: "string", BYTES: "string", BOOL: "boolean" };
const N = String.raw`(\d+\.?\d*|\.\d+)`;
const DURATION = new RegExp(`^(?:${N}|(?=.)(?:${N}d)?(?:${N}h)?(?:${N}m)?(?:${N}s)?(?:${N}ms)?)$`);
const SECONDS = [1, 86_400, 3600, 60, 1, 0.001];

/** Gives crewd's JSON form: enums as short words, integers as numbers, defaults, an event's payload as `data`. */
export function toJson<D extends es.DescMessage>(schema: D, message: es.MessageShape<D>): es.JsonObject {
  const json = es.toJson(schema, message, { useProtoFieldName: true, alwaysEmitImplicit: true, enumAsInteger: true });
  return walk(schema, json) as es.JsonObject;
}

/** Makes a message of crewd's JSON form. An error of code INVALID_ARGUMENT tells all that does not fit. */
export function fromJson<D extends es.DescMessage>(schema: D, json: es.JsonValue): es.MessageShape<D> {
  const problems: string[] = [];
  const known = walk(schema, json, problems);
  if (problems.length > 0) throw new CrewdError("INVALID_ARGUMENT", problems.join("; "));
  return es.fromJson(schema, known);
}

/** Goes from one form to the other: to crewd's, or, noting all problems, back. */
function walk(schema: es.DescMessage, json: es.JsonValue, problems?: string[], path = ""): es.JsonValue {
  if (!isObject(json)) return note(problems, `${path || schema.name}: an object is expected`);
  const [made, isEvent]: [es.JsonObject, boolean] = [{}, schema.typeName === "crewd.v1.Event"];
  for (const [key, value] of Object.entries(json)) {
    const isPayload = isEvent && key === "data";
    if (value === null || (isPayload && Object.keys(value).length === 0)) continue;
    const field = schema.fields.find(({ name }) => name === (isPayload ? json.kind : key));
    const at = path ? `${path}.${key}` : key;
    if (!field) note(problems, `${at}: unknown key`);
    else made[isEvent && field.oneof && !problems ? "data" : field.name] = ofField(field, value, problems, at);
  }
  return isEvent && !problems ? { data: {}, ...made } : made;
}

function ofField(field: es.DescField, value: es.JsonValue, problems?: string[], path = ""): es.JsonValue {
  const { fieldKind: kind, message } = field;
  const one = (item: es.JsonValue, at: string) => {
    if (message?.typeName.startsWith("crewd.")) return walk(message, item, problems, at);
    const known = problems ? read(field, item) : show(field, item);
    return known ?? note(problems, `${at}: ${JSON.stringify(item)} does not fit`);
  };
  if (kind === "list" && Array.isArray(value)) return value.map((item, index) => one(item, `${path}[${index}]`));
  if (kind === "map" && isObject(value))
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, one(item, `${path}.${key}`)]));
  return kind === "list" || kind === "map" ? note(problems, `${path}: a ${kind} is expected`) : one(value, path);
}

function show({ enum: words, scalar, message }: es.DescField, value: es.JsonValue): es.JsonValue {
  if (words) return words.values.find(({ number }) => number === value)?.localName.toLowerCase() ?? value;
  if (scalar && es.ScalarType[scalar].includes("64")) return Number(value);
  return message?.name === "Duration" ? String(value).replace(/(?<=\..*)0+s$/, "s") : value;
}

function read(field: es.DescField, value: es.JsonValue): es.JsonValue | undefined {
  const { enum: words, scalar, message, fieldKind: kind } = field;
  const [word, type] = [String(value).toUpperCase().replaceAll("-", "_"), TYPES[es.ScalarType[scalar ?? 0] ?? ""]];
  const known = message?.name === "Duration" ? seconds(value) : words && typeof value !== "number"
    ? words.values.find((each) => each.name === word || each.localName.toUpperCase() === word)?.number
    : scalar && typeof value !== (type ?? "number") ? undefined : value;
  // Protobuf's own reader judges the rest: ranges, instants, base64.
  const given = kind === "list" ? [known!] : kind === "map" ? { key: known! } : known!;
  return known === undefined ? known : attempt(() => es.fromJson(field.parent!, { [field.name]: given })) && known;
}

function seconds(span: es.JsonValue): string | undefined {
  const parts = DURATION.exec(String(span).trim())?.slice(1).map((part, unit) => Number(part ?? 0) * SECONDS[unit]!);
  return parts && `${parts.reduce((sum, part) => sum + part).toFixed(9)}s`;
}

const note = (problems: string[] | undefined, problem: string) => (problems?.push(problem), null);
const isObject = (v: es.JsonValue): v is es.JsonObject => typeof v === "object" && v !== null && !Array.isArray(v);
