import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Report } from "../../../src/diagnose/report/report.ts";
import { startFixture } from "../../fixtures/diagnose/server.mjs";
import { temporaryFolder } from "../../helpers/home.ts";
import { killNine, runProcess, startMeanwhile } from "../../helpers/meanwhile.ts";
import { waitFor } from "../../helpers/wait-for.ts";

test("diagnose --task takes up a diagnosis whose client was killed", async () => {
  const { url, close } = await startFixture();
  onTestFinished(async () => void (await close()));
  const cwd = temporaryFolder();
  const env = { MEANWHILE_HOME: path.join(cwd, "home") };
  const killed = startMeanwhile(["diagnose", "--async", "--suites", "completion,progress", url], { cwd, env });
  const taskId = await waitFor(() => /Task created: ([\w-]{36})/.exec(killed.stderr())?.[1]);
  await killNine(killed);
  const again = await runProcess(["diagnose", "--task", taskId, "--format", "json", "--quiet"], { cwd, env });
  expect((JSON.parse(again.stdout) as Report).suites).toEqual(["progress", "completion"]);
  expect(again.code).toBe(0);
});
