import { execFileSync } from "node:child_process";
import path from "node:path";
import { expect, test } from "vitest";
import transform from "../../../commands/transform/index.ts";
import { Monitored } from "../../fixtures/pack/monitored.ts";
import { run } from "../../helpers/run.ts";

/** Opening a FIFO waits until a writer opens it: a command that opened one would never end. */
function withFifo(name: string): Monitored {
  const monitored = new Monitored({ "a.txt": "one" });
  execFileSync("mkfifo", [path.join(monitored.root, name)]);
  return monitored;
}

test("monitor sync passes over a FIFO without waiting for it", async () => {
  expect(await withFifo("pipe").sync()).toMatchObject({ files_processed: 1, errors_total: 0 });
});

test("transform refuses a FIFO without opening it", async () => {
  const { root: folder, home } = withFifo("pipe.txt");
  const outcome = await run(transform, { file: "pipe.txt" }, { home, origin: { door: "mcp", folder } });
  expect(outcome).toMatchObject({ ending: "failed", message: expect.stringContaining("pipe.txt is no file") });
});
