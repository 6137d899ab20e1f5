import { defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "List the quarters that have a report",
  input: z.object({}),
  output: z.object({ quarters: z.array(z.string()) }),
  effects: "read",
  run: () => ({ quarters: ["Q1", "Q2", "Q3"] }),
});
