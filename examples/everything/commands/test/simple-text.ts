import { content, defineCommand } from "meanwhile";

export default defineCommand({
  summary: "Answers with one line of text",
  effects: "read",
  run: () => content("This is a simple text response for testing."),
});
