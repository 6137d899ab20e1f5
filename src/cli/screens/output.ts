import { type ContentBlock, contentProblem } from "../../command/content.ts";
import type { JsonObject } from "../../command/foreign.ts";

export type OutputFormat = "plain" | "json" | "yaml";

/**
 * The data a command made, as text for stdout; with a width, long texts go on in the next line, broken between words.
 */
export async function formatData(
  result: { data: unknown; content?: readonly ContentBlock[]; foreign?: JsonObject },
  format: OutputFormat,
  width = Number.POSITIVE_INFINITY,
): Promise<string> {
  if (result.foreign !== undefined) return await formatForeign(result.foreign, format, width);
  // As JSON has it, so that every form shows the same: a date is a text, what has no JSON is gone.
  const value: unknown = JSON.parse(
    JSON.stringify(result.content === undefined ? result.data : { content: result.content }) ?? "null",
  );
  if (format === "json") return `${JSON.stringify(value, null, 2)}\n`;
  if (format === "plain" && result.content !== undefined)
    return result.content.map((block) => `${describeBlock(block)}\n`).join("");
  if (format === "plain" && isEmpty(value)) return "";
  if (format === "plain" && (typeof value !== "object" || value === null)) return `${String(value)}\n`;
  const { stringify } = await import("yaml");
  return stringify(value, { lineWidth: Number.isFinite(width) ? width : 0 });
}

/** What somebody else's tool says, for a person; for a program its whole result. */
async function formatForeign(result: JsonObject, format: OutputFormat, width: number): Promise<string> {
  const { structuredContent, content } = result;
  if (format !== "plain") return await formatData({ data: result }, format, width);
  if (structuredContent !== undefined) return await formatData({ data: structuredContent }, format, width);
  return (Array.isArray(content) ? content : []).map((block) => `${describeAny(block)}\n`).join("");
}

/** A block that nobody has checked. */
function describeAny(block: unknown): string {
  return contentProblem([block]) === undefined ? describeBlock(block as ContentBlock) : "[--json prints it]";
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;
}

function describeBlock(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
    case "audio":
      return `[${block.mimeType}, ${Buffer.byteLength(block.data, "base64")} bytes; --json prints it]`;
    case "resource":
      return "text" in block.resource ? block.resource.text : `[${block.resource.uri}; --json prints it]`;
    case "resource_link":
      return `${block.name}: ${block.uri}`;
  }
}
