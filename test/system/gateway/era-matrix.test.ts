import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test, vi } from "vitest";
import { WrapHome } from "../../helpers/gated.ts";
import { type GatewayHere, sdkCommand, sdkUrl, wrapHere } from "../../helpers/gateway-here.ts";
import { shareAmongTests, temporaryFolder } from "../../helpers/home.ts";
import { type Carrier, connectGeneration, generations, type MatrixClient } from "../../helpers/matrix-clients.ts";
import { casesOf } from "../../helpers/rounds.ts";

/** Clients of every generation, by their SDKs, in front of servers of both, by theirs. */

const revisions = Object.keys(generations);
const wait = { timeout: 50_000, interval: 20 };
const textIn = (answer: object) => JSON.stringify((answer as { content?: unknown }).content);

/** Which lines `hold` has left, and whose they are: a number for each cell. */
function openTrace() {
  const file = path.join(temporaryFolder(), "trace");
  let cells = 0;
  return {
    file,
    nextCell: () => ++cells,
    has: (line: string) => vi.waitFor(() => expect(readFileSync(file, "utf8").split("\n")).toContain(line), wait),
  };
}

type Trace = ReturnType<typeof openTrace>;

async function exercise(client: MatrixClient, { revision, trace }: { revision: string; trace: Trace }): Promise<void> {
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(["echo", "ask", "hold", "task_result"]));
  const said = await client.call("echo", { text: "hello" });
  expect(textIn(said)).toContain("hello");
  if (revision >= "2025-06-18") expect(said.structuredContent).toEqual({ said: "hello", times: 1 });

  const n = trace.nextCell();
  const stop = new AbortController();
  // While it works: the SDKs drop what comes together with the answer.
  const heard: string[] = [];
  const onprogress = ({ message = "" }) => void heard.push(message);
  const held = client.call("hold", { n }, { signal: stop.signal, onprogress }).catch((error: unknown) => error);
  await trace.has(`hold ${n}`);
  await vi.waitFor(() => expect(heard).toContain("holding"), wait);
  stop.abort();
  await held;
  await trace.has(`stopped ${n}`);

  expect(textIn(await askThrough(client, revision))).toContain("Hello Ada");

  const { contents } = await client.readResource({ uri: "sdk://city/Bern" });
  expect(contents).toMatchObject([{ uri: "sdk://city/Bern", blob: "AAEC" }]);
  const { messages } = await client.getPrompt({ name: "visit", arguments: { city: "Bern" } });
  expect(JSON.stringify(messages)).toContain("Let us go to Bern.");
  const ref = { type: "ref/prompt", name: "visit" };
  const { completion } = await client.complete({ ref, argument: { name: "city", value: "Be" } });
  expect(completion).toMatchObject({ values: ["Berlin", "Bern"] });
}

/** A client that cannot be asked has a handle, and answers by a tool. */
async function askThrough(client: MatrixClient, revision: string): Promise<object> {
  const answered = await client.call("ask");
  if (revision >= "2025-06-18") return answered;
  const handle = JSON.stringify(answered);
  const [, job] = /job_id\W+([0-9a-f-]{36})/.exec(handle) ?? [];
  expect(handle).toContain("input_required");
  const status = JSON.stringify(await client.call("task_status", { job_id: job }));
  const [, key] = /key\W+([\w-]+)/.exec(status) ?? [];
  await client.call("task_answer", { job_id: job, answers: { [key as string]: { name: "Ada" } } });
  return await client.call("task_result", { job_id: job });
}

const answer = () => ({ action: "accept", content: { name: "Ada" } });

const carrierOf = (gateway: GatewayHere, way: string, revision: string): Carrier =>
  // The SDK of 2024-11-05 has no Streamable HTTP, nor has that revision.
  way === "stdio" || revision === "2024-11-05" ? { pipes: gateway.openPipes() } : { url: gateway.url };

describe.each([
  ["2025", "stdio"],
  ["2025", "HTTP"],
  ["2026", "stdio"],
  ["2026", "HTTP"],
] as const)("9: an upstream of %s over %s", (era, way) => {
  const shared = shareAmongTests(async () => {
    const trace = openTrace();
    // One at an address is in this process.
    process.env.TRACE_FILE = trace.file;
    const upstream = way === "stdio" ? sdkCommand(era, { TRACE_FILE: trace.file }) : await sdkUrl(era);
    return { trace, gateway: await wrapHere(upstream) };
  });

  // A start of a server for each client costs most of it.
  test.each(way === "HTTP" && era === "2026" ? revisions : casesOf(revisions, 0, 3))(
    "9: a client of %s lists, calls, follows, cancels, is asked, reads, and completes",
    async (revision) => {
      const { trace, gateway } = await shared();
      const client = await connectGeneration(revision, carrierOf(gateway, way, revision), answer);
      await exercise(client, { revision, trace });
    },
  );
});

describe("9: through the front and a daemon", () => {
  const shared = shareAmongTests(() => {
    const trace = openTrace();
    return { trace, home: new WrapHome({ TRACE_FILE: trace.file }) };
  });

  test.each(casesOf(revisions, 2))(
    "9: a client of %s has all that an upstream of 2025 over stdio has",
    async (revision) => {
      const { trace, home } = await shared();
      const { command = "", args = [] } = sdkCommand("2025");
      const words = ["wrap", "--name", "theirs", "--", command, ...args];
      const client = await connectGeneration(revision, { words, cwd: home.cwd, env: home.env }, answer);
      await exercise(client, { revision, trace });
    },
  );
});
