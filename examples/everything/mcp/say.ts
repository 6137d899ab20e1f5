import type { CallToolResult } from "@modelcontextprotocol/server";

/** A tool's answer of one line. */
export function say(text: string): CallToolResult {
  return { content: [{ type: "text", text }] };
}
