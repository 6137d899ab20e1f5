import { defineConfig } from "meanwhile";
import { registerInputTools } from "./mcp/input-tools.ts";
import { registerPrompts } from "./mcp/prompts.ts";
import { registerResources } from "./mcp/resources.ts";
import { registerTools } from "./mcp/tools.ts";

/** Commands do most of it; what they cannot do is registered on the SDK's own server. */
export default defineConfig({
  name: "everything",
  mcp(server, { era }) {
    registerTools(server);
    registerInputTools(server);
    registerPrompts(server);
    registerResources(server, era);
  },
});
