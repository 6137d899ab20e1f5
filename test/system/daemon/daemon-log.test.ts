import { existsSync, readdirSync, statSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { DaemonHome } from "../../helpers/daemon.ts";
import { writeFiles } from "../../helpers/home.ts";
import { runMeanwhile, startMeanwhile, waitFor } from "../../helpers/meanwhile.ts";

/** The log of a daemon whose commands start children that write to it. The rest is in test/scenarios. */

const files = {
  "commands/print/lines.ts": `import { defineCommand } from "meanwhile";
    import { z } from "zod";
    export default defineCommand({
      summary: "Print lines",
      input: z.object({ count: z.number() }),
      run: ({ count }) => {
        for (let n = 0; n < count; n++) console.log("line " + n);
        return { count };
      },
    });`,
  "commands/print/child.ts": `import { spawnSync } from "node:child_process";
    import { defineCommand } from "meanwhile";
    import { z } from "zod";
    export default defineCommand({
      summary: "Have a child print",
      input: z.object({ word: z.string(), bytes: z.number() }),
      run: ({ word, bytes }) => {
        spawnSync("sh", ["-c", \`yes \${word} | head -c \${bytes}\`], { stdio: "inherit" });
        return {};
      },
    });`,
};
const megabyte = 1024 * 1024;
/** Long lines are fewer. */
const filler = "x".repeat(200);
/** So many make more than a log may have. */
const linesOf = (word: string) => Math.floor((11 * megabyte) / (word.length + filler.length + 1));

function openHome(config: object = {}) {
  const home = new DaemonHome({ config });
  writeFiles(home.cwd, files);
  const env = { MEANWHILE_HOME: home.home };
  const logs = () =>
    readdirSync(home.home)
      .filter((name) => /^daemon\.log(\.\d+)?$/.test(name))
      .sort();
  return {
    home,
    logs,
    bytes: () =>
      logs().reduce(
        (sum, name) => sum + (statSync(path.join(home.home, name), { throwIfNoEntry: false })?.size ?? 0),
        0,
      ),
    connect: () => home.connect({ words: [] }),
    print: (...words: string[]) => runMeanwhile(["daemon", "logs", ...words], { cwd: home.cwd, env }),
    follow: () => startMeanwhile(["daemon", "logs", "--follow", "--json"], { cwd: home.cwd, env }),
  };
}

test("while a daemon lives its log has at most 10 MiB, and 2 files of that beside it with `logFiles: 2`; who follows it goes across", async () => {
  const { home, logs, bytes, connect, print, follow } = openHome({ logFiles: 2 });
  const client = await connect();
  const log = path.join(home.home, "daemon.log");
  const isShort = () => statSync(log).size <= 10 * megabyte && !existsSync(`${log}.turn`);
  const fill = async (word: string) => {
    await client.call("print_child", {
      word: `${word}${filler}`,
      bytes: linesOf(word) * (word.length + filler.length + 1),
    });
    await waitFor(isShort);
    expect(bytes()).toBeLessThan(3 * 12 * megabyte);
  };
  await client.call("print_lines", { count: 1 });
  const followed = follow();
  await waitFor(() => followed.stdout().includes("line 0"));
  await fill("one");
  await client.call("print_child", { word: "between", bytes: 8 });
  await waitFor(() => followed.stdout().endsWith("between\n"));
  expect(followed.stdout().match(/^onex+$/gm)).toHaveLength(linesOf("one"));
  followed.child.kill("SIGINT");
  for (const word of ["two", "three"]) await fill(word);
  expect(logs()).toEqual(["daemon.log", "daemon.log.1", "daemon.log.2"]);
  expect(statSync(`${log}.1`).mode & 0o777).toBe(0o600);
  await client.call("print_child", { word: "last", bytes: 5 });
  const shown = await print("--json");
  expect(shown.code).toBe(0);
  const words = [...shown.stdout.matchAll(/^(one|between|two|three|last)x*$/gm)].map(([, word]) => word);
  expect([...new Set(words)]).toEqual(["between", "two", "three", "last"]);
});
