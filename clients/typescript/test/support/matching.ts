import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

type Got = JsonValue | undefined;
type Operator = (wanted: any, got: any, path: string) => string | undefined;

/** Tells what is not as expected; nothing if all is. */
export function difference(expected: JsonValue, got: Got, path = "it"): string | undefined {
  if (Array.isArray(expected)) {
    if (!Array.isArray(got) || got.length !== expected.length)
      return unlike(path, `a list of ${expected.length}`, got);
    return first(expected.map((each, index) => difference(each, got[index], `${path}[${index}]`)));
  }
  if (!isObject(expected)) return expected === got ? undefined : unlike(path, JSON.stringify(expected), got);
  const operator = Object.keys(expected).find((key) => key.startsWith("$"));
  if (operator) {
    const judge = OPERATORS[operator];
    return judge ? judge(expected[operator], got, path) : `${path}: there is no ${operator}`;
  }
  if (!isObject(got)) return unlike(path, JSON.stringify(expected), got);
  return first(Object.entries(expected).map(([key, value]) => ofKey(got, key, value, `${path}.${key}`)));
}

function ofKey(got: JsonObject, key: string, expected: JsonValue, path: string): string | undefined {
  const absent = isObject(expected) && expected.$absent === true;
  if (absent) return key in got ? unlike(path, "nothing", got[key]) : undefined;
  return key in got ? difference(expected, got[key], path) : unlike(path, "it there", got);
}

const OPERATORS: Record<string, Operator> = {
  $has: (wanted: JsonValue[], got: JsonValue[], path) => {
    const lacking = wanted.find((each) => got.every((item) => difference(each, item)));
    return lacking === undefined ? undefined : unlike(path, `an item like ${JSON.stringify(lacking)}`, got);
  },
  $length: (wanted: number, got: JsonValue[], path) =>
    got.length === wanted ? undefined : unlike(path, `${wanted} items`, got),
  $min: (wanted: number, got: number, path) => (got >= wanted ? undefined : unlike(path, `at least ${wanted}`, got)),
  $match: (wanted: string, got: string, path) =>
    new RegExp(wanted).test(got) ? undefined : unlike(path, `what matches ${wanted}`, got),
  $contiguous: (wanted: number, got: JsonObject[], path) => {
    const numbers = got.map((event) => event.run_sequence ?? null);
    return difference(numbers.map((_, index) => wanted + index), numbers, `${path} (run_sequence)`);
  },
  $kinds: (wanted: string[], got: JsonObject[], path) => {
    const left = got.map((event) => event.kind);
    const missed = wanted.find((kind) => !left.splice(0, left.indexOf(kind) + 1 || left.length).includes(kind));
    return missed === undefined ? undefined : unlike(path, `${missed} in its place`, got.map((event) => event.kind!));
  },
  $all: (wanted: JsonValue[], got: Got, path) => first(wanted.map((each) => difference(each, got, path))),
};

function isObject(value: Got): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function first(differences: (string | undefined)[]): string | undefined {
  return differences.find((each) => each !== undefined);
}

function unlike(path: string, wanted: string, got: Got): string {
  return `${path}: ${wanted} is expected, not ${JSON.stringify(got)?.slice(0, 2000)}`;
}
