import { isObject, type Json } from "../wire/json.ts";

/** What a tool gave, as a client of MCP gets it. */
export interface CallResult {
  readonly content: readonly { readonly type: string; readonly [key: string]: unknown }[];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  readonly isError?: boolean;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/** A result as it may be read; of somebody else's tool anything may be missing. A copy, so that nobody's own is changed. */
export function asCallResult(result: Json): CallResult {
  const copy = structuredClone(result);
  const { content, structuredContent, isError, _meta } = copy;
  return {
    ...copy,
    content: Array.isArray(content) ? content.filter(isBlock) : [],
    ...(isObject(structuredContent) && { structuredContent }),
    ...(typeof isError === "boolean" && { isError }),
    ...(isObject(_meta) && { _meta }),
  };
}

function isBlock(block: unknown): block is CallResult["content"][number] {
  return isObject(block) && typeof block.type === "string";
}
