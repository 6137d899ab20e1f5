import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { DaemonHome, daemonProcesses, isRunning } from "../../helpers/daemon.ts";
import { temporaryFolder } from "../../helpers/home.ts";
import { waitFor } from "../../helpers/meanwhile.ts";

/** Daemons that are stopped or blocked, and code that never ends. The rest is in test/scenarios/daemon-odd.test.ts. */

test("a home that everybody may read is made its user's alone, and a planted log is not written through", async () => {
  const home = new DaemonHome();
  mkdirSync(home.home);
  chmodSync(home.home, 0o755);
  const victim = path.join(temporaryFolder(), "victim");
  writeFileSync(victim, "");
  symlinkSync(victim, path.join(home.home, "daemon.log"));
  const refused = home.start();
  expect(await refused.exited).toBe(70);
  expect(refused.stderr()).toMatch(/^✗ The log \S+daemon\.log cannot be written: [^\n]+; remove what is there\.\n$/);
  expect(readFileSync(victim, "utf8")).toBe("");
  expect(statSync(home.home).mode & 0o777).toBe(0o700);
  rmSync(path.join(home.home, "daemon.log"));
  await home.connect();
});

test("a daemon that is stopped by the system is shown, named, and ended by --now", async () => {
  const home = new DaemonHome();
  const client = await home.connect();
  const { pid } = home.daemon();
  process.kill(pid, "SIGSTOP");
  const shown = await home.terminal("daemon", "status");
  expect(shown.stdout).toContain(`Daemon ${pid}  does not answer; meanwhile daemon stop --now ends it`);
  expect(await home.terminal("daemon", "stop", "--now")).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`Daemon ${pid} has ended`),
  });
  expect((await client.call("say_back")).isError).not.toBe(true);
});

test("a front that finds its daemon blocked says, within its 30 s, which command blocks it and since when, and `daemon status` does too", async () => {
  const home = new DaemonHome();
  const client = await home.connect();
  const { pid } = home.daemon();
  const file = path.join(home.cwd, "gate");
  const call = client.startCall("job_blocks", { file });
  await waitFor(() => readOr(file) !== "");
  const late = home.start();
  const shown = await home.terminal("daemon", "status");
  expect(shown.stdout).toMatch(
    new RegExp(
      `Daemon ${pid}  does not answer, blocked for \\d+ s, since \\d\\d:\\d\\d:\\d\\d, while job_blocks ran; meanwhile daemon stop --now ends it`,
    ),
  );
  expect(await late.exited).toBe(70);
  expect(late.stderr()).toMatch(
    new RegExp(
      `^✗ Daemon ${pid} did not answer within 30 s: it was blocked for \\d+ s, since \\d\\d:\\d\\d:\\d\\d, while job_blocks ran \\(isolation: "process" prevents that\\); [^\\n]+\\n$`,
    ),
  );
  writeFileSync(`${file}.go`, "");
  expect((await call.answer).result?.structuredContent).toMatchObject({ data: { passed: file } });
});

test("a config file of code that breaks while a session goes on neither ends it nor hides the daemons", async () => {
  const home = new DaemonHome();
  const config = path.join(home.cwd, "meanwhile.config.ts");
  writeFileSync(config, "export default {};");
  const client = await home.connect();
  const { pid } = home.daemon();
  writeFileSync(config, "export default {");
  const shown = await home.terminal("daemon", "status");
  expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining(`Daemon ${pid}`) });
  expect(shown.stderr).toMatch(/^! Which daemon is this project's is not known: [^\n]+\n$/);
  expect(await home.terminal("daemon", "stop", "--all")).toMatchObject({ code: 0 });
  expect((await client.request("tools/list")).error?.message).toContain("meanwhile.config.ts");
  writeFileSync(config, "export default {};");
  expect(JSON.stringify(await client.request("tools/list"))).toContain("say_back");
});

test("a config file that never finishes loading does not keep a front that is told to end, nor stays behind", async () => {
  const home = new DaemonHome();
  const mark = path.join(home.cwd, "mark");
  writeFileSync(
    path.join(home.cwd, "meanwhile.config.ts"),
    `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(mark)}, String(process.pid)); setInterval(() => {}, 1000); await new Promise(() => {});`,
  );
  const front = home.start({ words: [] });
  const loader = await waitFor(() => Number(readOr(mark)) || undefined);
  front.child.kill("SIGTERM");
  expect(await front.exited).toBe(0);
  await waitFor(() => !isRunning(loader));
  expect(daemonProcesses(home.home)).toEqual([]);
});

function readOr(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
