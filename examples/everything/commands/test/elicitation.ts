import { content, defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Asks the person a question given by the caller",
  input: z.object({ message: z.string().describe("The question") }),
  effects: "read",
  async run({ message }, task) {
    const person = await task.ask(
      message,
      z.object({
        username: z.string().describe("User's response"),
        email: z.string().describe("User's email address"),
      }),
    );
    return content(`User response: ${JSON.stringify(person)}`);
  },
});
