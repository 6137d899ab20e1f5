import { CommandError, defineCommand } from "meanwhile";

export default defineCommand({
  summary: "Fails",
  effects: "read",
  run: () => {
    throw new CommandError("This tool intentionally returns an error for testing");
  },
});
