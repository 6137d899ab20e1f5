import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { DaemonHome, dataOf } from "../helpers/daemon.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { adminOf, newSchema, serverPort, testPassword, urlOf } from "../helpers/postgres.ts";
import { gate, kindOf, taskIdOf } from "../helpers/project.ts";

const admin = adminOf(serverPort);

test("The daemon behind `meanwhile serve` keeps its tasks in PostgreSQL: whoever comes back gets the result from there.", async () => {
  const schema = newSchema();
  const home = new DaemonHome({ env: { MEANWHILE_STORE: urlOf(await serverPort(), schema) } });
  const traces = gate();
  const first = await home.connect();
  const handle = await first.call("work_long", traces.input);
  expect(kindOf(handle)).toBe("handle");
  await traces.seen("started");
  await first.close();
  const { rows } = await (await admin()).query(`select task_id as id, status from ${schema}.tasks`);
  expect(rows).toEqual([{ id: taskIdOf(handle), status: "working" }]);
  const second = await home.connect();
  traces.open();
  const result = await second.call("task_result", { job_id: taskIdOf(handle) });
  expect(dataOf(result)).toMatchObject({ passed: traces.input.file });
  expect(traces.starts()).toBe(1);
  expect(existsSync(path.join(home.home, "tasks.db"))).toBe(false);
  // Another daemon, of the same project, finds it too.
  expect(await home.terminal("daemon", "stop")).toMatchObject({ code: 0 });
  const third = await home.connect();
  expect(dataOf(await third.call("task_result", { job_id: taskIdOf(handle) }))).toEqual(dataOf(result));
  expect(home.log()).not.toContain(testPassword);
});

test("With a wrong password clients are told that the database cannot be used and the log says why; neither says the password.", async () => {
  const wrong = "secret-but-wrong";
  const url = urlOf(await serverPort()).replace(testPassword, wrong);
  const home = new DaemonHome({ env: { MEANWHILE_STORE: url } });
  const client = await home.connect();
  const answer = await client.request("tools/call", { name: "work_long", arguments: gate().input });
  expect(answer.error).toEqual({
    code: -32603,
    message: "The task database cannot be used; whoever runs the server finds the reason in its log.",
  });
  await waitFor(() => home.log().includes("the password or the user's name is wrong; check both in its URL"));
  const { stdout: words } = spawnSync("ps", ["-ww", "-o", "command=", "-p", `${home.daemon().pid}`], {
    encoding: "utf8",
  });
  expect(words).toContain("_daemon");
  const status = await home.terminal("daemon", "status", "--json");
  for (const said of [JSON.stringify(answer), home.log(), client.front.stderr(), words, status.stdout])
    expect(said).not.toContain(wrong);
});
