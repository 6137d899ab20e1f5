import path from "node:path";
import type { EngineInput, Transformed } from "./_engines.ts";
import { decodeText } from "./_text.ts";

export function toText({ bytes }: EngineInput): Transformed {
  const text = decodeText(bytes);
  return { text, title: "", facts: { lines: countLines(text) } };
}

export function toCode({ bytes, name }: EngineInput): Transformed {
  const text = decodeText(bytes);
  const language = path.extname(name).slice(1).toLowerCase() || path.basename(name).toLowerCase();
  return { text, title: "", facts: { language, lines: countLines(text) } };
}

export function countLines(text: string): number {
  if (text === "") return 0;
  let lines = 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lines++;
  return text.endsWith("\n") ? lines - 1 : lines;
}
