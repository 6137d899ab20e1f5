import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openCatalog } from "../../src/command/catalog.ts";
import { silentLog } from "../../src/log.ts";
import { openTasks } from "../../src/runtime/open-tasks.ts";
import { loadSettings } from "../../src/settings/settings.ts";
import { isTerminal } from "../../src/task/task.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { startMeanwhile } from "../helpers/meanwhile.ts";
import { gate } from "../helpers/project.ts";

const command = (summary: string, body: string) => `import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineCommand } from "meanwhile";
import { z } from "zod";
const starts = (file: string) => (existsSync(file) ? readFileSync(file, "utf8").split("started\\n").length - 1 : 0);
export default defineCommand({ summary: "${summary}", idempotent: true, input: z.object({ file: z.string() }), async run({ file }, task): Promise<object> { ${body} } });`;

const commands = {
  "near/patient.ts": command(
    "Waits at a gate",
    `appendFileSync(file, "started\\n");
  while (!existsSync(file + ".go")) await sleep(10, undefined, { signal: task.signal });
  return { attempt: task.attempt };`,
  ),
  // It waits until its neighbour is at work beside it.
  "near/hoard.ts": command(
    "Exhausts the memory of its process",
    `while (starts(file) < Math.min(task.attempt, 2)) await sleep(10);
  appendFileSync(file, "hoards\\n");
  const hoard: unknown[] = [];
  for (;;) hoard.push(Array<number>(1_000_000).fill(0.5));`,
  ),
};

test("a command that exhausts memory ends one server, and no more: it is given up after 3 crashes of its own process, and its safe neighbour completes", async () => {
  const cwd = temporaryFolder();
  const folder = writeFiles(path.join(cwd, "commands"), commands);
  const env = { MEANWHILE_HOME: temporaryFolder(), NODE_OPTIONS: "--max-old-space-size=96" };
  const tasks = await openTasks(
    await loadSettings({ cwd, env: { ...process.env, ...env }, flags: { commands: [folder], bundled: false } }),
  );
  onTestFinished(() => tasks.close());
  const catalog = await openCatalog({ folders: [folder], toolPrefix: "", log: silentLog });
  const near = gate();
  const create = async (tool: string) => {
    const entry = catalog.get(tool);
    if (entry === undefined) throw new Error(`There is no command ${tool}.`);
    return (await tasks.engine.create({ entry, input: near.input, caller: tasks.localKey, reason: "test" })).task
      .taskId;
  };
  const start = () =>
    startMeanwhile(["serve", "--http", "--port", "0", "--commands", folder, "--no-bundled"], { cwd, env });
  const [patient, hoard] = [await create("near_patient"), await create("near_hoard")];
  // Whoever looks after the server starts it again each time it dies.
  const hasEnded = tasks.engine.wait(tasks.localKey, hoard).then(() => "ended");
  const servers = [start()];
  const died = () => servers.at(-1)?.exited.then(() => "died");
  while (servers.length < 6 && (await Promise.race([hasEnded, died()])) === "died") servers.push(start());
  expect(servers.length, "one server died, and the next one lived").toBe(2);
  expect((await tasks.engine.get(tasks.localKey, hoard)).statusMessage).toMatch(
    /^Its process ended by itself .* Given up after 3 attempts\.$/,
  );
  expect(near.lines().filter((line) => line === "hoards")).toHaveLength(4);
  expect(isTerminal(await tasks.engine.get(tasks.localKey, patient)), "the neighbour goes on").toBe(false);
  near.open();
  expect(await tasks.engine.wait(tasks.localKey, patient)).toMatchObject({
    status: "completed",
    outcome: { data: { attempt: 2 } },
  });
  expect(near.starts()).toBe(2);
});
