import { defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Breaks its own promise: what it returns does not fit its output schema",
  output: z.object({ count: z.number() }),
  long: true,
  run: () => ({ count: "many" }) as never,
});
