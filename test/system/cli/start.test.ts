import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { startMeanwhile } from "../../helpers/meanwhile.ts";
import { overPipes, WireClient } from "../../helpers/wire.ts";

/** A host waits for the files that a start loads: to find and open a file costs more than to run it. */

const echo = `import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({ summary: "Echo", input: z.object({ text: z.string() }), output: z.object({ text: z.string(), zod: z.string() }), effects: "read",
  run: ({ text }) => ({ text, zod: import.meta.resolve("zod") }) });`;

/** Notes every file that a process loads. */
const note = `import { registerHooks } from "node:module"; import { appendFileSync } from "node:fs";
registerHooks({ load(url, context, next) { if (url.startsWith("file:")) appendFileSync(process.env.LOADED, url + "\\n"); return next(url, context); } });`;

/** The files that `serve --in-process` has loaded when it has answered its first call, and what that call said. */
async function serveOnce(project: string): Promise<{ readonly loaded: readonly string[]; readonly data: unknown }> {
  const loaded = path.join(temporaryFolder(), "loaded");
  const env = { LOADED: loaded, NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(note)}` };
  const started = startMeanwhile(["serve", "--in-process", "--no-bundled"], { cwd: project, env });
  const client = await new WireClient(overPipes(started.child), { revision: "2025-11-25" }).begin();
  const result = await client.call("say_echo", { text: "hi" });
  const files = new Set(readFileSync(loaded, "utf8").trim().split("\n"));
  return { loaded: [...files], data: result.structuredContent?.data };
}

test("serve --in-process loads fewer than 18 of our files, and lends a command our zod as one file", async () => {
  const { loaded, data } = await serveOnce(writeFiles(temporaryFolder(), { "commands/say/echo.ts": echo }));
  expect(loaded.filter((file) => file.includes("/dist/") && !file.includes("/node_modules/")).length).toBeLessThan(18);
  expect(data).toEqual({ text: "hi", zod: expect.stringMatching(/\/dist\/zod\.js$/) });
});

test("a command gets the zod of its own project where that has one", async () => {
  const own = 'export * from "./real.js"; export { z } from "./real.js";';
  const real = path.resolve(import.meta.dirname, "../../../node_modules/zod/index.js");
  const project = writeFiles(temporaryFolder(), {
    "commands/say/echo.ts": echo,
    "node_modules/zod/package.json": '{ "name": "zod", "version": "4.0.0", "type": "module", "exports": "./index.js" }',
    "node_modules/zod/index.js": own,
    "node_modules/zod/real.js": `export * from ${JSON.stringify(real)};`,
  });
  const { data } = await serveOnce(project);
  expect(data).toMatchObject({ text: "hi", zod: `file://${path.join(project, "node_modules/zod/index.js")}` });
});
