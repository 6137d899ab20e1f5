import { expect, test } from "vitest";
import { dataOf, ownCommands } from "../../helpers/daemon.ts";
import { DaemonHomeHere } from "../../helpers/daemon-here.ts";

test("serve over stdio is a proxy on the streams of its run, and exits with 0 on a signal", async () => {
  const home = new DaemonHomeHere();
  const run = home.startCli([...ownCommands, "serve"]);
  const client = run.client({ revision: "2025-06-18" });
  await client.begin();
  expect(dataOf(await client.call("say_back", { text: "hello" }))).toMatchObject({ text: "hello" });
  expect(home.daemons).toHaveLength(1);
  run.signal("SIGTERM");
  expect(await run.exited).toBe(0);
});
