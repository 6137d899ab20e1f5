import { CommandError, defineCommand } from "meanwhile";

export default defineCommand({
  summary: "Works, then says that it failed",
  long: true,
  run: () => {
    throw new CommandError("This job always fails");
  },
});
