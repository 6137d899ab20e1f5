import { createServer } from "node:net";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { nextTurn } from "../../../src/clock.ts";
import { toLine } from "../../../src/daemon/greeting.ts";
import { reachStatus } from "../../../src/daemon/reach/connect.ts";
import { writeRecord } from "../../../src/daemon/record.ts";
import { openHome } from "../../../src/paths.ts";
import { temporaryFolder } from "../../helpers/home.ts";
import { plainStatus } from "../plain-status.ts";

test("waits for a daemon that another process is starting", async () => {
  const home = openHome({ MEANWHILE_HOME: path.join(temporaryFolder(), "home") });
  const key = "0123456789abcdef";
  const launched = Promise.withResolvers<void>();
  const answer = reachStatus({
    home,
    key,
    names: [],
    project: "a project",
    host: undefined,
    command: ["node"],
    env: process.env,
    cwd: process.cwd(),
    launch: () => {
      launched.resolve();
      // The report of a daemon that finds the lock taken.
      return { said: nextTurn().then(() => "taken"), close: () => {}, kill: () => {} };
    },
  });
  await launched.promise;
  const status = { ...plainStatus, pid: process.pid, socket: path.join(home.runFolder, "its.sock") };
  const server = createServer((socket) => socket.end(toLine({ meanwhile: "status", ...status })));
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(status.socket, resolve));
  writeRecord(home, key, { pid: process.pid, socket: status.socket });
  expect(await answer).toMatchObject({ meanwhile: "status", pid: process.pid });
});
