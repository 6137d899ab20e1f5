import { writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../helpers/home.ts";
import { type LoadClient, peakMbOf } from "../helpers/load.ts";
import { startInProcess, startWithDaemon } from "../helpers/load-server.ts";
import { rounds } from "../helpers/rounds.ts";

test("many parallel results of 10 MB all arrive on one connection in one process, within bounds of memory", async () => {
  const { client, pids } = await startInProcess();
  const gate = path.join(temporaryFolder(), "gate");
  const ids = Array.from({ length: rounds.largeResults }, (_, at) => client.call("load_big", { mib: 9.5, gate, at }));
  await client.request("ping");
  writeFileSync(gate, "");
  const { peakMb } = await peakMbOf(
    pids,
    client.until(() => ids.every((id) => client.answers.has(id))),
  );
  expect(ids.filter((id) => !client.answers.has(id))).toEqual([]);
  expect(Math.min(...ids.map((id) => client.answers.get(id) ?? 0))).toBeGreaterThan(9.5 * 1024 * 1024);
  expect(peakMb, "megabytes of all processes").toBeLessThan(rounds.largeResultsPeakMb);
  await client.request("ping");
});

test("a client that does not read keeps no more than 700 MB, whatever it has asked for; its results are tasks, and others are answered meanwhile", async () => {
  const calls = 24;
  const { client, home, pids } = await startWithDaemon({ heapMb: 512 });
  const other = await startWithDaemon({ home });
  const gate = path.join(temporaryFolder(), "gate");
  for (let at = 0; at < calls; at++) client.call("load_big", { mib: 9.5, gate, at });
  await client.request("ping");
  client.stopReading();
  writeFileSync(gate, "");
  // What the front and the system had taken before it stopped reading has left.
  const isKept = async () => (await endedOf(other.client)) >= calls - 3;
  const pinged = async () => {
    do {
      for (let n = 0; n < 50; n++) {
        await other.client.request("ping");
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    } while (!(await isKept()));
  };
  const { peakMb } = await peakMbOf([...pids, ...other.pids.slice(1)], pinged());
  expect(peakMb, "megabytes of all processes").toBeLessThan(700);
});

/** How many results there are to ask for. */
async function endedOf(client: LoadClient): Promise<number> {
  const { structuredContent } = await client.result("tools/call", { name: "task_list", arguments: { limit: 100 } });
  return (structuredContent as { data: { jobs: { status: string }[] } }).data.jobs.filter(
    ({ status }) => status === "completed",
  ).length;
}
