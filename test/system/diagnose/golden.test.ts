import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, test } from "vitest";
import type { DiagnosisTarget, ToolToCall } from "../../../src/diagnose/diagnosis-target.ts";
import { toHtml } from "../../../src/diagnose/formats/html-report.ts";
import { toJson } from "../../../src/diagnose/formats/json-report.ts";
import { toMarkdown } from "../../../src/diagnose/formats/markdown-report.ts";
import { toSarif } from "../../../src/diagnose/formats/sarif-report.ts";
import { toTerminal } from "../../../src/diagnose/formats/terminal-report.ts";
import type { Report } from "../../../src/diagnose/report/report.ts";
import { runDiagnosis } from "../../../src/diagnose/run-diagnosis.ts";
import { startFixture } from "../../fixtures/diagnose/server.mjs";
import { piped, reached } from "../../helpers/diagnose.ts";
import { shareAmongTests, temporaryFolder } from "../../helpers/home.ts";
import { codeCache, executable, quickStart, waitFor } from "../../helpers/meanwhile.ts";
import { casesOf } from "../../helpers/rounds.ts";

/**
 * What the whole quick set says about servers that other people wrote, and about ours. Each golden file lists every
 * finding with the reason why it is true; a check that could not be finished is an entry too, and so is the grade, or
 * why there is none. CI diagnoses the good fixture and Meanwhile, both over HTTP, `npm run check:long` every server;
 * with `-u` it writes what it sees. Reasons are kept, and a new finding has none until a person writes it.
 */

const root = path.resolve(import.meta.dirname, "../../..");
const modules = path.join(root, "node_modules/@modelcontextprotocol");
const peers = path.join(root, "test/fixtures/diagnose/peers");

interface Golden {
  /** Null where no call of a tool succeeded. */
  readonly grade: string | null;
  /** Why there is no grade. */
  readonly why?: string;
  readonly findings: Readonly<
    Record<string, { readonly severity: string; readonly title: string; readonly reason: string }>
  >;
  readonly unfinished: readonly string[];
}

const children: ChildProcess[] = [];
const fixtures: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await Promise.all(fixtures.map((close) => close()));
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts a server that listens on a port it is told by a variable. */
async function listening(words: readonly string[], portVariable: string): Promise<DiagnosisTarget> {
  const port = await freePort();
  const child = spawn(process.execPath, [quickStart, ...words], {
    env: { ...process.env, NODE_COMPILE_CACHE: codeCache, [portVariable]: String(port) },
  });
  children.push(child);
  let printed = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (printed += text));
  await waitFor(
    () => /listening|running|started/i.test(printed),
    () => `it does not listen: ${printed}`,
  );
  return reached(`http://127.0.0.1:${port}/mcp`);
}

async function goodOne(): Promise<DiagnosisTarget> {
  const { url, close } = await startFixture({ tokens: ["one-caller", "another-caller"] });
  fixtures.push(close);
  return reached(url, { authorization: "Bearer one-caller" }, { authorization: "Bearer another-caller" });
}

/** What servers of ours are started in: one folder for all, the tests run at the same time. */
const places = shareAmongTests(() => temporaryFolder());

async function ownHttp(): Promise<DiagnosisTarget> {
  const place = await places();
  const home = path.join(place, "over-http");
  const child = spawn(process.execPath, [quickStart, executable, ...ownWords, "serve", "--http", "--port", "0"], {
    cwd: place,
    env: { ...process.env, NODE_COMPILE_CACHE: codeCache, MEANWHILE_HOME: home },
  });
  children.push(child);
  let printed = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (printed += text));
  const url = await waitFor(
    () => /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(printed)?.[0],
    () => `no address was printed: ${printed}`,
  );
  return reached(url, { authorization: `Bearer ${readFileSync(path.join(home, "token"), "utf8").trim()}` });
}

/** What a server of files may serve, and where it must not look. */
const [served, privateFolder] = ["served", "private"].map((name) =>
  mkdtempSync(path.join(tmpdir(), `meanwhile-${name}-`)),
) as [string, string];
afterAll(() => {
  for (const folder of [served, privateFolder]) rmSync(folder, { recursive: true, force: true });
});

const ownWords = ["--no-bundled", "--commands", path.join(root, "examples/everything/commands")];

const servers: readonly {
  name: string;
  open: () => DiagnosisTarget | Promise<DiagnosisTarget>;
  tools?: readonly ToolToCall[];
}[] = [
  { name: "the good fixture over HTTP", open: goodOne },
  { name: "the good fixture over stdio", open: () => piped("server.mjs") },
  {
    name: "Meanwhile over stdio",
    open: async () => ({
      kind: "stdio",
      argv: [
        "env",
        `MEANWHILE_HOME=${path.join(await places(), "over-stdio")}`,
        process.execPath,
        executable,
        ...ownWords,
        "serve",
        "--in-process",
      ],
    }),
  },
  { name: "Meanwhile over HTTP", open: ownHttp },
  {
    name: "SDK v1 progressExample over stdio",
    open: () => piped(process.execPath, path.join(modules, "sdk/dist/esm/examples/server/progressExample.js")),
  },
  {
    name: "SDK v1 simpleStreamableHttp over HTTP",
    open: () => listening([path.join(modules, "sdk/dist/esm/examples/server/simpleStreamableHttp.js")], "MCP_PORT"),
  },
  { name: "SDK v2 over stdio", open: () => piped(process.execPath, path.join(peers, "sdk-v2.mjs")) },
  {
    name: "server-everything over stdio",
    open: () => piped(process.execPath, path.join(modules, "server-everything/dist/index.js")),
    tools: [{ name: "trigger-long-running-operation", arguments: { duration: 3, steps: 6 } }],
  },
  {
    name: "server-memory over stdio",
    open: () => piped(process.execPath, path.join(modules, "server-memory/dist/index.js")),
  },
  {
    name: "server-filesystem over stdio",
    open: () => piped(process.execPath, path.join(modules, "server-filesystem/dist/index.js"), served),
  },
  // Its one tool runs whatever it is given, and does not say that it only reads: nobody calls it.
  {
    name: "mcp-server-commands over stdio",
    open: () => piped(process.execPath, path.join(root, "node_modules/mcp-server-commands/build/index.js")),
  },
  {
    name: "playwright-mcp without a browser over stdio",
    open: () =>
      piped(
        process.execPath,
        path.join(root, "node_modules/@playwright/mcp/cli.js"),
        "--headless",
        "--isolated",
        "--executable-path",
        "/no/such/browser",
      ),
  },
  {
    name: "server-everything over HTTP",
    open: () => listening([path.join(modules, "server-everything/dist/index.js"), "streamableHttp"], "PORT"),
  },
];

describe.concurrent("the quick set finds exactly what is written down, with a reason each", () => {
  test.for(casesOf(servers, 0, 3))("$name", async ({ name, open, tools }, { expect }) => {
    const report = await runDiagnosis({
      target: await open(),
      tools,
      isDeterministic: true,
      budgetMs: 100_000,
      version: "0",
      privateFolder,
    });
    const file = path.join(
      root,
      "test/fixtures/diagnose/golden",
      `${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}.json`,
    );
    const known: Golden = existsSync(file)
      ? (JSON.parse(readFileSync(file, "utf8")) as Golden)
      : { grade: null, findings: {}, unfinished: [] };
    const seen = toGolden(report, known);
    await expect(`${JSON.stringify(seen, undefined, 2)}\n`, explain(report)).toMatchFileSnapshot(file);
    if (report.score.grade === null)
      for (const draw of [toTerminal, toJson, toHtml]) expect(onOneLine(draw(report)), draw.name).toContain(seen.why);
    for (const draw of [toTerminal, toJson, toHtml, toMarkdown, toSarif])
      expect(draw(report).toLowerCase(), draw.name).toContain("skipped");
    for (const [id, { reason }] of Object.entries(seen.findings))
      expect(reason, `${id} has no reason: is it true?`).not.toBe("");
  });
});

/** As it reads: a line's end and what stands before the next one are one space, and a page's signs are themselves. */
function onOneLine(text: string): string {
  return text
    .replaceAll(/\s+/g, " ")
    .replaceAll(
      /&(lt|gt|quot|#39);/g,
      (_all, name: string) => ({ lt: "<", gt: ">", quot: '"', "#39": "'" })[name] ?? "",
    )
    .replaceAll('\\"', '"');
}

function toGolden({ findings, checks, score }: Report, known: Golden): Golden {
  return {
    grade: score.grade,
    ...(score.grade === null && { why: score.explanation }),
    findings: Object.fromEntries(
      findings.map(({ id, severity, title }) => [id, { severity, title, reason: known.findings[id]?.reason ?? "" }]),
    ),
    unfinished: checks.filter(({ outcome }) => outcome === "unfinished").map(({ id }) => id),
  };
}

function explain({ findings, checks }: Report): string {
  const told = findings.map(
    ({ id, title, evidence }) =>
      `${id}: ${title}\n${evidence.map(({ kind, text }) => `    ${kind}: ${text}`).join("\n")}`,
  );
  const open = checks.filter(({ outcome }) => outcome === "unfinished").map(({ id, note }) => `${id}: ${note}`);
  return [...told, ...open].join("\n");
}
