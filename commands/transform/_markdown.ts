import { parse } from "yaml";
import { frontMatterLength } from "../vault/_mask.ts";
import { readNote } from "../vault/_note.ts";
import type { EngineInput, Transformed } from "./_engines.ts";
import { countLines } from "./_plain.ts";
import { decodeText } from "./_text.ts";

export function fromMarkdown({ bytes }: EngineInput): Transformed {
  const whole = decodeText(bytes);
  const { title, headings, tags } = readNote(whole, "", parse);
  const text = withoutComments(whole.slice(frontMatterLength(whole))).trimStart();
  return {
    text,
    title,
    facts: { lines: countLines(text), headings: headings.length, ...(tags.length > 0 && { tags: tags.join(", ") }) },
  };
}

/** Leaves out `<!-- … -->`; one that is never closed is text. */
function withoutComments(text: string): string {
  const kept: string[] = [];
  let from = 0;
  for (let open = text.indexOf("<!--"); open !== -1; open = text.indexOf("<!--", from)) {
    const close = text.indexOf("-->", open + 4);
    if (close === -1) break;
    kept.push(text.slice(from, open));
    from = close + 3;
  }
  return kept.join("") + text.slice(from);
}
