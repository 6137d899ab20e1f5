import { runCli } from "./cli.ts";
import { temporaryFolder, writeFiles } from "./home.ts";
import { waitFor } from "./wait-for.ts";

const name = `import { defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Ask for a name",
  output: z.object({ greeting: z.string() }),
  async run(_, task) {
    const { name } = await task.ask("What is your name?", z.object({ name: z.string() }));
    return { greeting: "Hello, " + name };
  },
});
`;
const long = `import { defineCommand } from "meanwhile";

export default defineCommand({
  summary: "Run until it is stopped",
  async run(_, task) {
    task.progress({ done: 1, total: 4, message: "Page 1 of 4" });
    await new Promise((_, reject) => task.signal.addEventListener("abort", () => reject(task.signal.reason)));
  },
});
`;

/** A project whose command `ask name` asks a question and whose command `wait long` runs until it is stopped. */
export function openAskingProject() {
  const cwd = writeFiles(temporaryFolder(), { "commands/ask/name.ts": name, "commands/wait/long.ts": long });
  const place = { cwd, env: { MEANWHILE_HOME: temporaryFolder() } };
  return { place, commands: `${cwd}/commands` };
}

/** Starts the command that asks, as a task of a detached worker, and returns when its question is open. */
export async function startAskingTask() {
  const { place } = openAskingProject();
  const taskId = (await runCli(["ask", "name", "--detach", "--quiet"], place)).stdout.trim();
  await waitFor(async () => (await runCli(["tasks", "show", taskId], place)).stdout.includes("status: input_required"));
  return { place, taskId, ended: () => runCli(["tasks", "result", taskId, "--wait"], place) };
}
