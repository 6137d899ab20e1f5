import { parseWeighed } from "../../wire/json.ts";

/** More than any list of tools has: a value of three bytes takes sixty when it is parsed. */
const limits = { depth: 200, values: 200_000 };

/** The value, or undefined for what is no JSON, too deep or too much; `onWeight` learns what it costs. */
export function parseJson(text: string, onWeight?: (values: number) => void): unknown {
  const parsed = parseWeighed(text, limits);
  if (parsed !== undefined) onWeight?.(parsed.values);
  return parsed?.value;
}
