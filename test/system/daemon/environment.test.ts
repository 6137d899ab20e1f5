import path from "node:path";
import { expect, test } from "vitest";
import { DaemonHome, dataOf } from "../../helpers/daemon.ts";
import { writeFiles } from "../../helpers/home.ts";

const command = (value: string, more = "") => `import { defineCommand } from "meanwhile";
const { ACME_KEY: key, ACME_REGION = "none" } = process.env;
export default defineCommand({ summary: "Tells", run: () => ({ value: ${value}, pid: process.pid }), ${more} });
`;

test("two hosts whose entries differ in a variable that a command reads have a daemon each, also one that its file or an isolated run reads", async () => {
  const home = new DaemonHome();
  writeFiles(path.join(home.cwd, "commands"), {
    "shared.ts": command("process.env.ACME_KEY"),
    "taken.ts": command("key"),
    "isolated.ts": command("key", 'isolation: "process", run: () => ({ value: key, pid: process.ppid })'),
  });
  const words = ["--no-bundled"];
  const clients = await Promise.all(["a", "b"].map((value) => home.connect({ words, env: { ACME_KEY: value } })));
  const tools = ["shared", "taken", "isolated"];
  const seen = await Promise.all(
    clients.map(async (client) => {
      const results = await Promise.all(tools.map((tool) => client.call(tool)));
      return results.map((result) => dataOf<{ value: string; pid: number }>(result));
    }),
  );
  const pids = seen.map(([shared]) => shared?.pid as number);
  expect(seen).toEqual([Array(3).fill({ value: "a", pid: pids[0] }), Array(3).fill({ value: "b", pid: pids[1] })]);
  const daemons = home.daemons().map(({ pid }) => pid);
  expect(daemons.toSorted()).toEqual(pids.toSorted());
  expect(pids[0]).not.toBe(pids[1]);
});
