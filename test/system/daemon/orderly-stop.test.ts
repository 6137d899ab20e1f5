import path from "node:path";
import { expect, test } from "vitest";
import { DaemonHome, isRunning } from "../../helpers/daemon.ts";
import { waitFor } from "../../helpers/meanwhile.ts";
import { gate, kindOf } from "../../helpers/project.ts";
import { resultOf } from "../../helpers/wire.ts";

/** Signals to a daemon. How a daemon stops is in test/scenarios/orderly-stop.test.ts. */

const folder = path.resolve(import.meta.dirname, "../../fixtures/stop/commands");

test("a second SIGTERM ends a daemon at once, and a SIGHUP does not count as the second", async () => {
  const home = new DaemonHome({ config: { graceSeconds: 60 } });
  const client = await home.connect({ words: ["--no-bundled", "--commands", folder] });
  const { pid } = home.daemon();
  const traces = gate();
  const { answer } = client.startCall("stop_once", traces.input);
  await traces.seen("started");
  process.kill(pid, "SIGTERM");
  expect(kindOf(resultOf(await answer))).toBe("handle");
  // The end of a session sends it.
  process.kill(pid, "SIGHUP");
  expect(await client.call("task_list")).toMatchObject({ structuredContent: { success: true } });
  expect(isRunning(pid)).toBe(true);
  process.kill(pid, "SIGTERM");
  await waitFor(() => !isRunning(pid));
  expect(traces.lines()).toEqual(["started"]);
});
