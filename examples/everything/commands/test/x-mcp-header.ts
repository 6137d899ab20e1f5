import { content, defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Takes an argument that HTTP clients repeat in the header Mcp-Param-Region",
  input: z.object({
    region: z.string().optional().meta({ "x-mcp-header": "Region" }),
    level: z.int().optional(),
  }),
  effects: "read",
  run: ({ region }) => content(`region=${region ?? "none"}`),
});
