import { content, defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Asks for a confirmation; the client carries the call's state back to it",
  effects: "read",
  async run(_input, task) {
    await task.ask("Please confirm", z.object({ ok: z.boolean() }));
    return content("state-ok");
  },
});
