import { type Handler, Parser, type ParserOptions } from "htmlparser2";
import { Unreadable } from "../_pack/limits.ts";

/** Nobody writes deeper than this, and the parser's time grows with the square of it. */
const maxDepth = 2_000;

/** Reads HTML or XML in one pass, without a tree; refuses what is nested without end. */
export function parseMarkup(text: string, handler: Partial<Handler>, options: ParserOptions = {}): void {
  let depth = 0;
  const parser = new Parser(
    {
      ...handler,
      onopentag(tag, attributes, isImplied) {
        if (++depth > maxDepth) throw new Unreadable(`its elements are nested more than ${maxDepth} deep`);
        handler.onopentag?.(tag, attributes, isImplied);
      },
      onclosetag(tag, isImplied) {
        depth--;
        handler.onclosetag?.(tag, isImplied);
      },
    },
    options,
  );
  parser.end(text);
}
