import { content, defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Asks for a confirmation; a state that was changed on the way is refused",
  effects: "read",
  async run(_input, task) {
    await task.ask("Please confirm", z.object({ ok: z.boolean() }));
    return content("The state came back as it was sent.");
  },
});
