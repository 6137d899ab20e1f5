import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import path from "node:path";
import { build, type Format } from "esbuild";
import { describe, expect, test } from "vitest";
import { leaseThread as postgresThread } from "../../src/store/postgres/keep-leases.ts";
import { leaseThread } from "../../src/store/sqlite/lease-keeper.ts";
import { dataOf } from "../helpers/daemon.ts";
import { cleanUp, shareAmongTests, temporaryFolder } from "../helpers/home.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { overPipes, takesTasks, WireClient } from "../helpers/wire.ts";

/**
 * A program with the package inside, bundled by esbuild, starts and answers where nothing is installed. The bundlers
 * that CI does not have are in `npm run check:bundlers`.
 */

const root = path.resolve(import.meta.dirname, "../..");
const programs = path.join(root, "test/fixtures/bundle");
const optional = ["pg", "bullmq", "ioredis", "@opentelemetry", "better-sqlite3"];
const formats = [
  ["ESM", "esm", "mjs"],
  ["CommonJS", "cjs", "cjs"],
] as const;

/** The programs in a folder where the package is installed with what it depends on, and none of the optional ones. */
function installed(): string {
  const folder = temporaryFolder();
  cpSync(programs, folder, { recursive: true });
  const packages = path.join(folder, "node_modules");
  mkdirSync(packages);
  for (const name of readdirSync(path.join(root, "node_modules")))
    if (!name.startsWith(".") && name !== "meanwhile" && !optional.includes(name))
      symlinkSync(path.join(root, "node_modules", name), path.join(packages, name));
  for (const name of ["package.json", "dist"])
    cpSync(path.join(root, name), path.join(packages, "meanwhile", name), { recursive: true });
  return folder;
}

/** The folder of the bundles. */
const output = shareAmongTests(async () => {
  const folder = installed();
  for (const [, format, ending] of formats) await bundle(folder, format, ending);
  return path.join(folder, "out");
});

async function bundle(folder: string, format: Format, ending: string): Promise<void> {
  const { warnings, metafile } = await build({
    entryPoints: ["created", "wrapped"].map((name) => path.join(folder, `${name}.ts`)),
    outdir: path.join(folder, "out"),
    outExtension: { ".js": `.${ending}` },
    bundle: true,
    platform: "node",
    format,
    metafile: true,
    logLevel: "silent",
  });
  expect(warnings.map(({ text, location }) => `${location?.file}: ${text}`)).toEqual([]);
  const used = Object.keys(metafile.inputs).map((file) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? "");
  expect(optional.filter((name) => used.some((one) => one === name || one.startsWith(`${name}/`)))).toEqual([]);
}

/** Starts a copy of a bundle in an empty folder, as a client of 2025-11-25. */
async function start(file: string, { store, beside = [] }: { store?: string; beside?: readonly string[] } = {}) {
  const folder = temporaryFolder();
  cpSync(path.join(await output(), file), path.join(folder, file));
  for (const name of beside) cpSync(path.join(root, "dist", name), path.join(folder, name));
  if (store !== undefined) installDatabase(folder);
  const child = spawn(process.execPath, [file, ...(store === undefined ? [] : [store])], {
    cwd: folder,
    env: { HOME: folder, PATH: "" },
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const exited = new Promise<number | null>((resolve) => child.on("close", resolve));
  cleanUp(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  const client = new WireClient(overPipes(child), { revision: "2026-07-28", capabilities: takesTasks });
  return { client, folder, stderr: () => stderr, exited };
}

function installDatabase(folder: string): void {
  const name = "node_modules/better-sqlite3";
  mkdirSync(path.join(folder, "node_modules"));
  symlinkSync(path.join(root, name), path.join(folder, name));
}

test.each([leaseThread, postgresThread])(
  "the package has $built, whose name no other package's file has",
  ({ built }) => {
    expect(existsSync(path.join(root, "dist", built))).toBe(true);
    expect(built).toMatch(/^meanwhile-/);
  },
);

describe.each(formats)("bundled as %s", (_name, _format, ending) => {
  test("a program with createServer answers, completes a pattern, checks JSON Schema and logs", async () => {
    const { client, stderr } = await start(`created.${ending}`);
    expect(dataOf(await client.call("greet", { name: "ab" }))).toEqual({ greeting: "Hello ab" });
    expect(dataOf(await client.call("count", { text: "four" }))).toEqual({ letters: 4 });
    expect(await client.call("count", { text: 4 })).toMatchObject({ isError: true });
    const { result } = await client.request("completion/complete", {
      ref: { type: "ref/prompt", name: "greet" },
      argument: { name: "name", value: "b" },
    });
    expect(result?.completion.values).toEqual(expect.arrayContaining(["b", "ba"]));
    expect(await client.call("break")).toMatchObject({ isError: true });
    const [line = ""] = stderr().split("\n");
    expect(JSON.parse(line)).toMatchObject({ level: 40, msg: "command failed", error: { message: "It broke." } });
  });

  test("a store in a file does not open without the file of the lease thread, and works with it", async () => {
    const without = await start(`created.${ending}`, { store: "data/tasks.db" });
    expect((await without.client.startCall("greet", { name: "ab" }).answer).error).toBeDefined();
    expect(without.stderr()).toContain(
      `The file ${leaseThread.built} of the package meanwhile is missing, which renews the leases of running tasks; copy it from node_modules/meanwhile/dist to the folder of your bundle.`,
    );
    const { client, stderr } = await start(`created.${ending}`, {
      store: "data/tasks.db",
      beside: [leaseThread.built],
    });
    const { taskId } = await client.call("wait", { ms: 300 });
    const { result } = await waitFor(async () => {
      const answer = await client.request("tasks/get", { taskId });
      return answer.result?.status === "completed" && answer;
    });
    expect(dataOf(result?.result)).toEqual({ waited: 300 });
    expect(stderr()).toBe("");
  });

  test("a program with durable answers", async () => {
    const { client } = await start(`wrapped.${ending}`);
    expect(await client.call("greet", { name: "Ada" })).toMatchObject({ content: [{ text: "Hello Ada" }] });
  });
});
