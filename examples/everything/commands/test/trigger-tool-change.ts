import { utimesSync } from "node:fs";
import { content, defineCommand } from "meanwhile";

export default defineCommand({
  summary: "Touches its own file, so that the commands are loaded again and clients hear of it",
  run() {
    const now = new Date();
    utimesSync(import.meta.filename, now, now);
    return content("The tool list will be announced as changed.");
  },
});
