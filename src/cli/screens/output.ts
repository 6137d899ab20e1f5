import { type ContentBlock, contentProblem } from "../../command/content.ts";
import type { JsonObject } from "../../command/foreign.ts";

export type OutputFormat = "plain" | "json" | "yaml";

/** The data of a result as text for stdout. With a width, long texts are broken between words. */
export async function formatData(
  result: { data: unknown; content?: readonly ContentBlock[]; foreign?: JsonObject },
  format: OutputFormat,
  width = Number.POSITIVE_INFINITY,
): Promise<string> {
  if (result.foreign !== undefined) return await formatForeign(result.foreign, format, width);
  // Through JSON first, so that all formats show the same: dates are texts, and functions are left out.
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

/** The result of an upstream's tool: its data or content for a person, all of it as JSON or YAML. */
async function formatForeign(result: JsonObject, format: OutputFormat, width: number): Promise<string> {
  const { structuredContent, content } = result;
  if (format !== "plain") return await formatData({ data: result }, format, width);
  if (structuredContent !== undefined) return await formatData({ data: structuredContent }, format, width);
  return (Array.isArray(content) ? content : []).map((block) => `${describeAny(block)}\n`).join("");
}

/** Describes a block of an upstream's tool, which may be malformed. */
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
      return `[${block.mimeType}, ${Buffer.byteLength(block.data, "base64")} bytes; --out <file> writes it]`;
    case "resource":
      return "text" in block.resource ? block.resource.text : `[${block.resource.uri}; --json prints it]`;
    case "resource_link":
      return `${block.name}: ${block.uri}`;
  }
}
