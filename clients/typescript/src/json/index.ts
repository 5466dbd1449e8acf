import * as es from "@bufbuild/protobuf";
import { CrewdError, ifReadable } from "../errors.js";

/**
 * Gives crewd's JSON form, as `crew --json` prints it: names as in the contract, enums in lower case
 * without prefix, 64-bit integers as numbers, defaults, and an event's payload under `data`.
 */
export function toJson<D extends es.DescMessage>(
  schema: D,
  message: es.MessageShape<D>,
): es.JsonObject {
  const options = { useProtoFieldName: true, alwaysEmitImplicit: true, enumAsInteger: true };
  return shownMessage(schema, es.toJson(schema, message, options) as es.JsonObject);
}

/**
 * Makes a message of crewd's JSON form. Enums may be written in any case, with `-` for `_`, and by
 * their full names; spans of time as `90`, `1.5s`, `2m` or `1h30m`. `CrewdError` with code
 * INVALID_ARGUMENT: its message tells all that does not fit.
 */
export function fromJson<D extends es.DescMessage>(
  schema: D,
  json: es.JsonValue,
): es.MessageShape<D> {
  const reader = new Reader();
  const known = reader.message(schema, json, "");
  if (reader.problems.length > 0) {
    throw new CrewdError("INVALID_ARGUMENT", reader.problems.join("; "));
  }
  return es.fromJson(schema, known);
}

const PAYLOAD = "data";

// What protobuf's JSON has for a scalar that is no number.
const TYPES: ReadonlyMap<es.ScalarType, string> = new Map([
  [es.ScalarType.STRING, "string"],
  [es.ScalarType.BYTES, "string"],
  [es.ScalarType.BOOL, "boolean"],
]);
const LONG: ReadonlySet<es.ScalarType> = new Set([
  es.ScalarType.INT64,
  es.ScalarType.UINT64,
  es.ScalarType.SINT64,
  es.ScalarType.FIXED64,
  es.ScalarType.SFIXED64,
]);

const NUMBER = String.raw`(\d+\.?\d*|\.\d+)`;
const UNITS = ["d", "h", "m", "s", "ms"].map((unit) => `(?:${NUMBER}${unit})?`).join("");
const SPAN = new RegExp(`^(?:${NUMBER}|(?=.)${UNITS})$`);
// The seconds of a number without unit, then those of each unit.
const SECONDS = [1, 86_400, 3600, 60, 1, 0.001];

/** Makes crewd's form of protobuf's. */
function shownMessage(schema: es.DescMessage, json: es.JsonObject): es.JsonObject {
  const shown: es.JsonObject = {};
  for (const [name, value] of Object.entries(json)) {
    const field = fieldNamed(schema, name);
    if (!field || value === null) continue;
    const isPayload = isEvent(schema) && field.oneof !== undefined;
    shown[isPayload ? PAYLOAD : name] = shownField(field, value);
  }
  if (isEvent(schema)) shown[PAYLOAD] ??= {};
  return shown;
}

function shownField(field: es.DescField, value: es.JsonValue): es.JsonValue {
  if (field.fieldKind === "list" && Array.isArray(value)) {
    return value.map((item) => shownValue(field, item));
  }
  if (field.fieldKind === "map" && isObject(value)) {
    return mapped(value, (item) => shownValue(field, item));
  }
  return shownValue(field, value);
}

function shownValue(field: es.DescField, value: es.JsonValue): es.JsonValue {
  if (isOurs(field.message) && isObject(value)) return shownMessage(field.message, value);
  if (isDuration(field)) return String(value).replace(/(?<=\..*)0+s$/, "s");
  if (field.scalar && LONG.has(field.scalar)) return Number(value);
  if (!field.enum) return value;
  // A number that this version does not know stays one.
  const known = field.enum.values.find(({ number }) => number === value);
  return known?.localName.toLowerCase() ?? value;
}

/** Makes protobuf's form of crewd's, and notes all that does not fit. */
class Reader {
  readonly problems: string[] = [];

  message(schema: es.DescMessage, json: es.JsonValue, path: string): es.JsonValue {
    if (!isObject(json)) return this.refuse(`${path || schema.name}: an object is expected`);
    const read: es.JsonObject = {};
    for (const [key, value] of Object.entries(json)) {
      const isPayload = isEvent(schema) && key === PAYLOAD;
      if (value === null || (isPayload && isEmpty(value))) continue;
      const at = path ? `${path}.${key}` : key;
      const field = fieldNamed(schema, isPayload ? json.kind : key);
      if (field) read[field.name] = this.field(field, value, at);
      else this.refuse(`${at}: unknown key`);
    }
    return read;
  }

  private field(field: es.DescField, value: es.JsonValue, path: string): es.JsonValue {
    switch (field.fieldKind) {
      case "list":
        if (!Array.isArray(value)) return this.refuse(`${path}: a list is expected`);
        return value.map((item, index) => this.value(field, item, `${path}[${index}]`));
      case "map":
        if (!isObject(value)) return this.refuse(`${path}: a map is expected`);
        return mapped(value, (item, key) => this.value(field, item, `${path}.${key}`));
      default:
        return this.value(field, value, path);
    }
  }

  private value(field: es.DescField, value: es.JsonValue, path: string): es.JsonValue {
    if (isOurs(field.message)) return this.message(field.message, value, path);
    const meant = meantBy(field, value);
    if (meant !== undefined && takes(field, meant)) return meant;
    return this.refuse(`${path}: ${JSON.stringify(value)} does not fit`);
  }

  /** Gives what stands for a value that does not fit: nothing is made of it any more. */
  private refuse(problem: string): null {
    this.problems.push(problem);
    return null;
  }
}

function meantBy(field: es.DescField, value: es.JsonValue): es.JsonValue | undefined {
  if (isDuration(field)) return secondsOf(String(value));
  if (field.enum && typeof value !== "number") return numberOf(field.enum, String(value));
  const isOther = field.scalar && typeof value !== (TYPES.get(field.scalar) ?? "number");
  return isOther ? undefined : value;
}

function numberOf(words: es.DescEnum, text: string): number | undefined {
  const word = text.toUpperCase().replaceAll("-", "_");
  const isMeant = ({ name, localName }: es.DescEnumValue) =>
    name === word || localName.toUpperCase() === word;
  return words.values.find(isMeant)?.number;
}

/** Reads a span of time and gives it as protobuf's JSON has it. */
function secondsOf(text: string): string | undefined {
  const [whole, ...parts] = SPAN.exec(text.trim()) ?? [];
  if (whole === undefined) return undefined;
  const seconds = SECONDS.map((unit, index) => unit * Number(parts[index] ?? 0));
  return `${seconds.reduce((sum, each) => sum + each).toFixed(9)}s`;
}

/** Asks protobuf's own reader for the rest: ranges, instants, base64. */
function takes(field: es.DescField, value: es.JsonValue): boolean {
  const shapes = { list: [value], map: { key: value }, scalar: value, enum: value, message: value };
  const json = { [field.name]: shapes[field.fieldKind] };
  return ifReadable(() => es.fromJson(field.parent as es.DescMessage, json)) !== undefined;
}

function fieldNamed(schema: es.DescMessage, name: es.JsonValue | undefined) {
  return schema.fields.find((field) => field.name === name);
}

function isEvent(schema: es.DescMessage): boolean {
  return schema.typeName === "crewd.v1.Event";
}

/** Tells whether a message has crewd's form; the form of others is their own. */
function isOurs(schema: es.DescMessage | undefined): schema is es.DescMessage {
  return schema?.typeName.startsWith("crewd.") ?? false;
}

function isDuration(field: es.DescField): boolean {
  return field.message?.typeName === "google.protobuf.Duration";
}

function isObject(value: es.JsonValue): value is es.JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isEmpty(value: es.JsonValue): boolean {
  return isObject(value) && Object.keys(value).length === 0;
}

function mapped(
  json: es.JsonObject,
  change: (item: es.JsonValue, key: string) => es.JsonValue,
): es.JsonObject {
  const entries = Object.entries(json);
  return Object.fromEntries(entries.map(([key, item]) => [key, change(item, key)]));
}
