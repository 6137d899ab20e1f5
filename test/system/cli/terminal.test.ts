import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { runProcess, startGuardedHttp, waitFor } from "../../helpers/meanwhile.ts";
import { keys, openScreen } from "../../helpers/screen.ts";

test("the banner's command for a shell calls a tool; under `npm run` its hints begin with npx", async () => {
  const { stderr } = await startGuardedHttp([], { env: { npm_command: "run-script" } });
  await waitFor(() => stderr().includes("Ctrl-C stops it"), stderr);
  expect(stderr()).toContain("npx meanwhile token prints it.");
  const line = /From a shell:\n\n([\s\S]*?)\n\n/.exec(stderr())?.[1] ?? "";
  const { stdout } = await promisify(execFile)("sh", ["-c", line]);
  expect(stdout).toMatch(/"isError":false|"success\\*":true/);
});

test("the command in the README for a clone runs there", async () => {
  const root = path.resolve(import.meta.dirname, "../../..");
  const [, words = ""] =
    /^npx meanwhile (--commands .*)$/m.exec(readFileSync(path.join(root, "README.md"), "utf8")) ?? [];
  const { code, stdout } = await runProcess(words.split(" "), { cwd: root });
  expect([code, stdout]).toEqual([0, "pages: 4\nfile: q3.pdf\n"]);
});

const asking = `import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({
  summary: "Ask for an order",
  run: async (_, task) => await task.ask("What shall it be?", z.object({ dish: z.string().min(3) })),
});
`;

test("a form in a real terminal takes what is typed; Ctrl-C leaves it with exit code 130", async () => {
  const cwd = writeFiles(temporaryFolder(), { "commands/order/take.ts": asking });
  const answered = openScreen(["order", "take", "--json"], { cwd });
  await answered.sees(/What shall it be\?/);
  answered.press(`soup${keys.enter}`);
  expect(await answered.exited).toBe(0);
  expect(JSON.parse(answered.data())).toEqual({ dish: "soup" });
  const left = openScreen(["order", "take"], { cwd });
  await left.sees(/What shall it be\?/);
  left.press(keys.ctrlC);
  expect(await left.exited).toBe(130);
});
