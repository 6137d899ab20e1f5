import { setTimeout as sleep } from "node:timers/promises";
import { fromJsonSchema, type McpServer } from "@modelcontextprotocol/server";
import contactSchema from "./contact.schema.json" with { type: "json" };
import { say } from "./say.ts";

export function registerTools(server: McpServer): void {
  // Words of JSON Schema 2020-12 that a schema library would not write, and that must reach the client unchanged.
  const inputSchema = fromJsonSchema(contactSchema);
  server.registerTool(
    "json_schema_2020_12_tool",
    { description: "Lists its input schema word for word", inputSchema },
    (input) => say(JSON.stringify(input)),
  );

  server.registerTool(
    "test_reconnection",
    { description: "Hangs up on its caller, who comes back for the result" },
    async (ctx) => {
      ctx.http?.closeSSE?.();
      await sleep(100);
      return say("You came back.");
    },
  );

  server.registerTool("test_trigger_prompt_change", { description: "Announces that the prompts have changed" }, () => {
    server.sendPromptListChanged();
    return say("The prompt list was announced as changed.");
  });
}
