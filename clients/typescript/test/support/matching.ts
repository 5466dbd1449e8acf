import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

type Got = JsonValue | undefined;
type Operator = (wanted: JsonValue, got: Got, path: string) => string | undefined;

/** Tells what is not as expected; nothing if all is. */
export function difference(expected: JsonValue, got: Got, path = "it"): string | undefined {
  if (Array.isArray(expected)) return ofList(expected, got, path);
  if (!isObject(expected)) {
    return expected === got ? undefined : unlike(path, JSON.stringify(expected), got);
  }
  const operator = Object.entries(expected).find(([key]) => key.startsWith("$"));
  if (operator) return ofOperator(...operator, got, path);
  if (!isObject(got)) return unlike(path, JSON.stringify(expected), got);
  const entries = Object.entries(expected);
  return first(entries.map(([key, value]) => ofKey(got, key, value, `${path}.${key}`)));
}

function ofList(expected: JsonValue[], got: Got, path: string): string | undefined {
  if (!Array.isArray(got) || got.length !== expected.length) {
    return unlike(path, `a list of ${expected.length}`, got);
  }
  return first(expected.map((each, index) => difference(each, got[index], `${path}[${index}]`)));
}

function ofKey(got: JsonObject, key: string, expected: JsonValue, path: string) {
  const isThere = key in got;
  if (isObject(expected) && expected.$absent === true) {
    return isThere ? unlike(path, "nothing", got[key]) : undefined;
  }
  return isThere ? difference(expected, got[key], path) : unlike(path, "it there", got);
}

function ofOperator(name: string, wanted: JsonValue, got: Got, path: string) {
  const judge = OPERATORS[name];
  return judge ? judge(wanted, got, path) : `${path}: there is no ${name}`;
}

const OPERATORS: Record<string, Operator> = {
  $has: (wanted, got, path) => {
    const fits = (each: JsonValue) => listOf(got).some((item) => !difference(each, item));
    const lacking = listOf(wanted).find((each) => !fits(each));
    if (lacking === undefined) return undefined;
    return unlike(path, `an item like ${JSON.stringify(lacking)}`, got);
  },
  $length: (wanted, got, path) =>
    Array.isArray(got) && got.length === wanted ? undefined : unlike(path, `${wanted} items`, got),
  $min: (wanted, got, path) =>
    Number(got) >= Number(wanted) ? undefined : unlike(path, `at least ${wanted}`, got),
  $match: (wanted, got, path) =>
    typeof got === "string" && new RegExp(String(wanted)).test(got)
      ? undefined
      : unlike(path, `what matches ${wanted}`, got),
  $contiguous: (wanted, got, path) => {
    const numbers = eventsOf(got).map((event) => event.run_sequence ?? null);
    const due = numbers.map((_, index) => Number(wanted) + index);
    return difference(due, numbers, `${path} (run_sequence)`);
  },
  $kinds: (wanted, got, path) => {
    const kinds = eventsOf(got).map((event) => event.kind ?? null);
    let from = 0;
    for (const kind of listOf(wanted)) {
      const found = kinds.indexOf(kind, from);
      if (found < 0) return unlike(path, `${JSON.stringify(kind)} in its place`, kinds);
      from = found + 1;
    }
    return undefined;
  },
  $all: (wanted, got, path) => first(listOf(wanted).map((each) => difference(each, got, path))),
};

function isObject(value: Got): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function listOf(value: Got): JsonValue[] {
  return Array.isArray(value) ? value : [];
}

function eventsOf(value: Got): JsonObject[] {
  return listOf(value).filter(isObject);
}

function first(differences: (string | undefined)[]): string | undefined {
  return differences.find((each) => each !== undefined);
}

function unlike(path: string, wanted: string, got: Got): string {
  return `${path}: ${wanted} is expected, not ${JSON.stringify(got)?.slice(0, 2000)}`;
}
