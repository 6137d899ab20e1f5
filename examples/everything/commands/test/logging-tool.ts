import { content, defineCommand } from "meanwhile";

export default defineCommand({
  summary: "Logs one line, which only a client that asked for logging may receive",
  effects: "read",
  run(_input, task) {
    task.log.info("test_logging_tool ran");
    return content("Logged.");
  },
});
