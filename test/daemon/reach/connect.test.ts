import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { toLine } from "../../../src/daemon/greeting.ts";
import { reachStatus } from "../../../src/daemon/reach/connect.ts";
import { writeRecord } from "../../../src/daemon/record.ts";
import { openHome } from "../../../src/paths.ts";
import { isRunning } from "../../helpers/daemon.ts";
import { temporaryFolder } from "../../helpers/home.ts";
import { waitFor } from "../../helpers/meanwhile.ts";
import { plainStatus } from "../plain-status.ts";

test("a daemon that is on its way, and was started by somebody else, is waited for", async () => {
  const home = openHome({ MEANWHILE_HOME: path.join(temporaryFolder(), "home") });
  const key = "0123456789abcdef";
  const pidFile = path.join(temporaryFolder(), "pid");
  // What a daemon says that finds the lock taken.
  const late = `require("node:fs").writeFileSync(${JSON.stringify(pidFile)}, String(process.pid)); require("node:fs").writeSync(3, "taken");`;
  const answer = reachStatus({
    home,
    key,
    names: [],
    project: "a project",
    host: undefined,
    command: [process.execPath, "-e", late],
    env: process.env,
    cwd: process.cwd(),
  });
  await waitFor(() => hasEnded(pidFile));
  const status = { ...plainStatus, pid: process.pid, socket: path.join(home.runFolder, "its.sock") };
  const server = createServer((socket) => socket.end(toLine({ meanwhile: "status", ...status })));
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(status.socket, resolve));
  writeRecord(home, key, { pid: process.pid, socket: status.socket });
  expect(await answer).toMatchObject({ meanwhile: "status", pid: process.pid });
});

function hasEnded(pidFile: string): boolean {
  try {
    return !isRunning(Number(readFileSync(pidFile, "utf8")));
  } catch {
    return false; // It has not begun.
  }
}
