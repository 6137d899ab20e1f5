import path from "node:path";
import { expect, test } from "vitest";
import { DaemonHome, dataOf } from "../../helpers/daemon.ts";
import { writeFiles } from "../../helpers/home.ts";

const command = (pid: string, more = "") => `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Tells", ${more}run: () => ({ value: process.env.ACME_KEY ?? null, pid: process.${pid} }) });
`;

test("two hosts whose entries differ in a variable that a command reads have a daemon each, also with isolation: process", async () => {
  const home = new DaemonHome();
  writeFiles(path.join(home.cwd, "commands"), {
    "shared.ts": command("pid"),
    "isolated.ts": command("ppid", 'isolation: "process", '),
  });
  const words = ["--no-bundled"];
  const clients = await Promise.all(["a", "b"].map((value) => home.connect({ words, env: { ACME_KEY: value } })));
  const seen = await Promise.all(
    clients.map(async (client) => [
      dataOf<{ value: string; pid: number }>(await client.call("shared")),
      dataOf<{ value: string; pid: number }>(await client.call("isolated")),
    ]),
  );
  const pids = seen.map(([shared]) => shared?.pid as number);
  expect(seen).toEqual([Array(2).fill({ value: "a", pid: pids[0] }), Array(2).fill({ value: "b", pid: pids[1] })]);
  expect(
    home
      .daemons()
      .map(({ pid }) => pid)
      .toSorted(),
  ).toEqual(pids.toSorted());
  expect(pids[0]).not.toBe(pids[1]);
});
