import { content, defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Asks a question; since 2026-07-28 it travels in the answer, not as a request on the stream",
  effects: "read",
  async run(_input, task) {
    const { answer } = await task.ask("Anything to add?", z.object({ answer: z.string() }));
    return content(`Answered: ${answer}`);
  },
});
