import { isUtf8 } from "node:buffer";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { RpcCode } from "../../src/errors.ts";
import { metaKeys, toEnvelope } from "../../src/wire/request-envelope.ts";
import { modernRevision, revisions } from "../../src/wire/revisions.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { type RawHeaders, RawSocket, toRequest } from "../helpers/raw-socket.ts";
import { rounds } from "../helpers/rounds.ts";
import { openServer, type Pipes } from "../helpers/server.ts";
import type { Fields } from "../helpers/wire.ts";

/**
 * Near-messages, on pipes and over HTTP, in both eras: whatever comes, the process lives, every request that can be
 * answered has exactly one answer, every answer is a message, the next proper call works, and nothing stays in memory.
 *   npm run check:fuzz -- --seed … --frames …
 */
const { fuzzSeed: seed, fuzzFrames: allFrames } = rounds;
const guardMs = 60_000 + allFrames * 10;

// ---------------------------------------------------------------- what is sent

/** A message as text, the id it is sent with, and what becomes of the text on its way. */
interface Frame {
  /** JSON with `"@"` where the id goes. */
  readonly text: string;
  readonly id: IdKind;
  readonly damage: readonly Damage[];
}

type IdKind = (typeof idKinds)[number];
/** The usable ones first. */
const idKinds = [
  "number",
  "text",
  "negative",
  "odd",
  "again",
  "null",
  "fraction",
  "huge",
  "true",
  "list",
  "object",
  "infinite",
  "none",
] as const;

interface Damage {
  readonly kind: "cut" | "drop" | "insert" | "double" | "byte";
  /** Where, as a part of the whole. */
  readonly at: number;
  readonly letter: string;
}

const junk = fc.constantFrom<unknown>(7, "", "x", null, [], {}, true, -1, 0.5, "__proto__", [[]], { a: { b: [] } });
const clientInfo = { name: "fuzz", version: "1" };
const call = { name: "good_add", arguments: { a: 1, b: 2 } };
const envelope = fc.constantFrom<object>(
  toEnvelope(clientInfo, {}),
  toEnvelope(clientInfo, { extensions: { "io.modelcontextprotocol/tasks": {} } }),
  { [metaKeys.revision]: modernRevision, [metaKeys.clientCapabilities]: {} },
  { ...toEnvelope(clientInfo, {}), progressToken: 1 },
);
const badEnvelope = fc
  .record({
    key: fc.constantFrom(...Object.values(metaKeys), "progressToken"),
    value: fc.oneof(junk, fc.constantFrom("2099-01-01", ...revisions)),
  })
  .map(({ key, value }) => ({ ...toEnvelope(clientInfo, {}), [key]: value }));
const methods = [
  "ping",
  "server/discover",
  "tools/list",
  "tools/call",
  "prompts/list",
  "prompts/get",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "completion/complete",
  "logging/setLevel",
  "tasks/get",
  "tasks/list",
  "tasks/result",
  "tasks/cancel",
  "tasks/update",
  "subscriptions/listen",
  "elicitation/create",
  "initialize",
  "nobody/knows",
  "notifications/initialized",
  "notifications/cancelled",
  "",
  "__proto__",
  "toString",
];
const known = fc.oneof(
  junk,
  fc.constantFrom("good_add", "task_status", "task_list", "nobody", "meanwhile://stats", "debug"),
);
const params = fc.record(
  {
    name: known,
    arguments: fc.oneof(
      junk,
      fc.constantFrom<object>({ a: 1, b: 2 }, { a: "1" }, { job_id: "none" }, { a: 1e308, b: 1e308 }),
    ),
    uri: known,
    taskId: known,
    cursor: junk,
    level: known,
    ref: fc.oneof(junk, fc.constantFrom<object>({ type: "ref/resource", uri: "x" }, { type: "ref/prompt", name: "x" })),
    argument: fc.oneof(junk, fc.constant({ name: "a", value: "" })),
    notifications: fc.oneof(
      junk,
      fc.constantFrom<object>({ toolsListChanged: true }, { taskIds: ["none"] }, { taskIds: [7] }),
    ),
    requestId: junk,
    inputResponses: junk,
    requestState: junk,
    protocolVersion: fc.oneof(junk, fc.constantFrom(...revisions)),
    capabilities: junk,
    clientInfo: fc.oneof(junk, fc.constant(clientInfo)),
    _meta: fc.oneof(envelope, badEnvelope, junk),
  },
  { requiredKeys: [] },
);
/** Most of it right: a field that is wrong should be the only one. */
const request = fc.record({ method: fc.constantFrom(...methods), params });
const dressed = fc
  .tuple(request, fc.oneof({ weight: 6, arbitrary: envelope }, { weight: 1, arbitrary: badEnvelope }))
  .map(([{ method, params: given }, _meta]) => ({
    method,
    params: { ...given, _meta },
  }));
const wrongField = fc
  .tuple(
    fc.oneof(request, dressed),
    fc.constantFrom("jsonrpc", "method", "params", "result", "error", "toJSON", "constructor"),
    junk,
  )
  .map(([message, key, value]) => ({ ...message, [key]: value }));
const answer = fc.oneof(
  fc.record({ result: junk }),
  fc.record({ error: fc.oneof(junk, fc.constant({ code: -32000, message: "no" })) }),
);
/** Nothing is wrong with these in one era, in the other only what they say about it. */
const proper = fc
  .tuple(
    fc.constantFrom("ping", "tools/list", "tools/call", "prompts/list", "resources/list", "server/discover"),
    fc.option(envelope, { nil: undefined }),
  )
  .map(([method, about]) => ({
    method,
    params: { ...(method === "tools/call" && call), ...(about !== undefined && { _meta: about }) },
  }));
const object = fc.oneof(
  { weight: 3, arbitrary: proper as fc.Arbitrary<object> },
  { weight: 4, arbitrary: request },
  { weight: 4, arbitrary: dressed },
  { weight: 2, arbitrary: wrongField },
  { weight: 1, arbitrary: answer as fc.Arbitrary<object> },
);
const toText = (message: object) => JSON.stringify({ jsonrpc: "2.0", id: "@", ...message });
const ping = (more: string) => `{"jsonrpc":"2.0","id":"@","method":"ping","params":{${more}}}`;
/** What no object turns into. */
const literal = fc.oneof(
  fc.constantFrom(
    "",
    " ",
    "\r",
    "null",
    "true",
    "7",
    '"x"',
    "[]",
    "{}",
    '[{"jsonrpc":"2.0","id":"@","method":"ping"}]',
    "\ufeff{}",
    "{}{}",
    "NaN",
    "'x'",
  ),
  fc
    .constantFrom("1e400", "-0", "1e-400", "123456789012345678901234567890", "0.1e1", "00", "1.")
    .map((number) => ping(`"x":${number},"progressToken":${number}`)),
  fc.integer({ min: 1, max: 400 }).map((depth) => ping(`"x":${"[".repeat(depth)}${"]".repeat(depth)}`)),
  fc.integer({ min: 1, max: 400 }).map((depth) => ping(`"x":${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`)),
  fc.integer({ min: 1, max: 20_000 }).map((length) => ping(`"x":"${"x".repeat(length)}"`)),
  fc
    .constantFrom(
      '"id":7,"id":"@"',
      '"__proto__":{"x":1}',
      '"x":"\\ud800"',
      '"x":"\\u0000\\u2028\ud83d\ude00"',
      '"x":"\\x"',
    )
    .map(ping),
  fc.constantFrom(
    '{"jsonrpc":"2.0","method":"ping"}',
    '{"jsonrpc":"2.0","id":"@"}',
    '{"id":"@","method":"ping"}',
    '{"jsonrpc":"2.0","__proto__":{"id":1,"method":"ping"}}',
  ),
);
const damage: fc.Arbitrary<Damage> = fc.record({
  kind: fc.constantFrom("cut", "drop", "insert", "double", "byte"),
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  letter: fc.constantFrom(
    '"',
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\\",
    "0",
    "-",
    "e",
    " ",
    "\0",
    "\u00e9",
    "\u2028",
    "\xff",
    "\xc3",
    "\xed",
  ),
});
const frame: fc.Arbitrary<Frame> = fc.record({
  text: fc.oneof({ weight: 5, arbitrary: object.map(toText) }, { weight: 1, arbitrary: literal }),
  id: fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...idKinds.slice(0, 4)) },
    { weight: 1, arbitrary: fc.constantFrom(...idKinds) },
  ),
  damage: fc.oneof(
    { weight: 5, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(damage, { minLength: 1, maxLength: 3 }) },
  ),
});

let lastId = 1_000_000;

function toIdText(kind: IdKind): string {
  if (kind !== "again") lastId += 1;
  const texts: Record<IdKind, string> = {
    number: String(lastId),
    text: `"t-${lastId}"`,
    negative: `-${lastId}`,
    odd: `"\\u0000\u{1f600} \\"${lastId}"`,
    again: String(lastId),
    null: "null",
    fraction: `${lastId}.5`,
    huge: `9${lastId}000000000000`,
    true: "true",
    list: `[${lastId}]`,
    object: `{"id":${lastId}}`,
    infinite: "1e999",
    none: "",
  };
  return texts[kind];
}

/** The line as it is sent. */
function toLine({ text, id, damage: damages }: Frame): Buffer {
  const given = toIdText(id);
  let bytes = Buffer.from(given === "" ? text.replace('"id":"@",', "") : text.replace('"@"', () => given));
  for (const { kind, at: part, letter } of damages) {
    const at = Math.floor(part * bytes.length);
    const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)];
    if (kind === "cut") bytes = before;
    else if (kind === "drop") bytes = Buffer.concat([before, after.subarray(1)]);
    else if (kind === "insert") bytes = Buffer.concat([before, Buffer.from(letter), after]);
    else if (kind === "double") bytes = Buffer.concat([before, after.subarray(0, 9), after]);
    else bytes = Buffer.concat([before, Buffer.from(letter, "latin1"), after.subarray(1)]);
  }
  return bytes;
}

// ---------------------------------------------------------------- what it is owed

/** What JSON-RPC says of a line: whether it has to be answered, and by which id. */
interface Due {
  readonly answers: "one" | "none" | "one or none";
  /** Where it can be read. */
  readonly id?: string | number;
  /** A request is answered by its id; what is none may be answered by nobody's. */
  readonly isRequest?: boolean;
}

const maxDepth = 64;

function dueTo(line: Buffer): Due {
  if (line.toString("latin1").replace(/\r$/, "") === "") return { answers: "none" };
  const value = isUtf8(line) ? parsed(line) : undefined;
  if (typeof value !== "object" || value === null || Array.isArray(value) || depthOf(value) > maxDepth)
    return { answers: "one" };
  const { jsonrpc, id, method, params: given, result, error } = value as Fields;
  const isUsable = typeof id === "string" || Number.isSafeInteger(id);
  if (id !== undefined && !isUsable) return { answers: "one" };
  const own = id === undefined ? {} : { id: id as string | number };
  if (jsonrpc !== "2.0") return { answers: "one", ...own };
  if (method === undefined)
    return { answers: error !== undefined || (id !== undefined && result !== undefined) ? "none" : "one", ...own };
  const isWellFormed =
    typeof method === "string" &&
    (given === undefined || (typeof given === "object" && given !== null && !Array.isArray(given)));
  if (!isWellFormed) return { answers: id === undefined ? "one or none" : "one", ...own };
  if (id === undefined) return { answers: "none" };
  // One that listens stands until somebody ends it.
  return method === "subscriptions/listen"
    ? { answers: "one or none", ...own }
    : { answers: "one", isRequest: true, ...own };
}

function parsed(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString());
  } catch {
    return undefined;
  }
}

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

/**
 * True for the answer to a request, false for what the server says by itself; anything else is no message, and thrown.
 */
function isAnswer(message: Fields): boolean {
  const { jsonrpc, id, method, params: given, result, error } = message;
  const refuse = (why: string) => new Error(`${why}: ${JSON.stringify(message).slice(0, 500)}`);
  if (jsonrpc !== "2.0") throw refuse("This is no message");
  if (typeof method === "string") {
    if (result !== undefined || error !== undefined || (given !== undefined && typeof given !== "object"))
      throw refuse("This is no request");
    return false;
  }
  if ((result === undefined) === (error === undefined)) throw refuse("An answer has a result or an error");
  if (result !== undefined && (typeof result !== "object" || result === null || id === null))
    throw refuse("This is no result");
  if (
    error !== undefined &&
    !(Number.isSafeInteger(error.code) && typeof error.message === "string" && error.message !== "")
  )
    throw refuse("This is no error");
  if (id !== null && typeof id !== "string" && !Number.isSafeInteger(id)) throw refuse("This answers nobody");
  return true;
}

// ---------------------------------------------------------------- whom it is sent to

const add = `import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({ summary: "Add", effects: "read", input: z.object({ a: z.number(), b: z.number() }), run: ({ a, b }) => ({ sum: a + b }) });`;
const open = shareAmongTests(async () => {
  const server = await openServer({
    in: "http",
    store: "sqlite",
    commands: writeFiles(temporaryFolder(), { "good/add.ts": add }),
  });
  return { ...server, url: await server.url() };
});

const initialize = { method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo } };
const _meta = toEnvelope(clientInfo, {});
const sum = { result: { structuredContent: { data: { sum: 3 } } } };
const eras = ["2025-11-25", modernRevision] as const;
type Era = (typeof eras)[number];
const properCall = (era: Era) => ({ method: "tools/call", params: era === modernRevision ? { ...call, _meta } : call });

/** A pipe, and who has been answered on it. */
class Pipe {
  readonly answers = new Map<unknown, number>();
  total = 0;
  /** Answers that say that something went wrong in here. */
  readonly failures: string[] = [];
  /** What is wrong with what came. */
  problem: unknown;
  readonly #pipes: Pipes;
  readonly #waiting = new Map<unknown, (message: Fields) => void>();

  constructor(pipes: Pipes) {
    this.#pipes = pipes;
    let rest = "";
    pipes.stdout.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#receive(line);
    });
  }

  write(bytes: Uint8Array): void {
    this.#pipes.stdin.write(bytes);
  }

  async ask(message: object): Promise<Fields> {
    lastId += 1;
    return await this.#answerTo(`proper-${lastId}`, () =>
      this.write(Buffer.from(`${JSON.stringify({ jsonrpc: "2.0", id: `proper-${lastId}`, ...message })}\n`)),
    );
  }

  /** Resolves when this id has been answered. */
  async answered(id: unknown): Promise<void> {
    if (!this.answers.has(id)) await this.#answerTo(id, () => undefined);
  }

  async close(): Promise<void> {
    await this.#pipes.close();
  }

  async #answerTo(id: unknown, begin: () => void): Promise<Fields> {
    let guard: NodeJS.Timeout | undefined;
    try {
      return await new Promise((resolve, reject) => {
        guard = setTimeout(() => reject(new Error(`${JSON.stringify(id)} was never answered`)), 20_000);
        this.#waiting.set(id, resolve);
        begin();
      });
    } finally {
      clearTimeout(guard);
      this.#waiting.delete(id);
    }
  }

  #receive(line: string): void {
    try {
      const message = JSON.parse(line) as Fields;
      if (!isAnswer(message)) return;
      this.total += 1;
      if (message.error?.code === RpcCode.Internal) this.failures.push(line);
      this.answers.set(message.id, (this.answers.get(message.id) ?? 0) + 1);
      this.#waiting.get(message.id)?.(message);
    } catch (error) {
      this.problem ??= error;
    }
  }
}

/** The lines in pieces that end anywhere; after so many the rest is one. */
function* inPieces(bytes: Buffer, sizes: readonly number[]): Generator<Buffer> {
  for (let [at, n] = [0, 0]; at < bytes.length; n++) {
    const size = n < 500 ? (sizes[n % sizes.length] as number) : bytes.length;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

let sent = 0;

async function talkOverPipe(era: Era, frames: readonly Frame[], sizes: readonly number[]): Promise<void> {
  const pipe = new Pipe((await open()).openPipes());
  try {
    expect(
      await pipe.ask(era === modernRevision ? { method: "server/discover", params: { _meta } } : initialize),
    ).toHaveProperty("result");
    const before = pipe.total;
    const lines = frames.map(toLine);
    sent += lines.length;
    const dues = lines.map(dueTo);
    for (const piece of inPieces(Buffer.concat(lines.flatMap((line) => [line, Buffer.from("\n")])), sizes))
      pipe.write(piece);
    // A listening stands, and who takes its id meanwhile is refused without one.
    const standing = new Set(dues.filter(({ isRequest }) => isRequest !== true).map(({ id }) => id));
    for (const { id, isRequest } of dues) if (isRequest === true && !standing.has(id)) await pipe.answered(id);
    // Whatever else is said about all that is said by now.
    expect(await pipe.ask(properCall(era)), "the next call").toMatchObject(sum);
    if (pipe.problem !== undefined) throw pipe.problem;
    if (pipe.failures.length > 0)
      throw new Error(`What others send is no failure of ours: ${pipe.failures.join(", ")}`);
    for (const [id, times] of timesSent(dues)) {
      const answers = pipe.answers.get(id) ?? 0;
      if (answers > times)
        throw new Error(`${JSON.stringify(id)} was sent ${times} times, and answered ${answers} times`);
    }
    const least = dues.filter(({ answers }) => answers === "one").length;
    const most = least + dues.filter(({ answers }) => answers === "one or none").length;
    const answers = pipe.total - before - 1;
    if (answers < least || answers > most) throw new Error(`${least} to ${most} answers were due, and ${answers} came`);
  } finally {
    await pipe.close();
  }
}

function timesSent(dues: readonly Due[]): Map<string | number, number> {
  const times = new Map<string | number, number>();
  for (const { id } of dues) if (id !== undefined) times.set(id, (times.get(id) ?? 0) + 1);
  return times;
}

// ---------------------------------------------------------------- HTTP

const ways = [...eras, "alone"] as const;
type Way = (typeof ways)[number];
const usual: RawHeaders = {
  host: "localhost",
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};

/** Headers that a message goes with, in place of the right ones. */
const odd = fc.dictionary(
  fc.constantFrom(
    "host",
    "origin",
    "accept",
    "content-type",
    "authorization",
    "mcp-session-id",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "last-event-id",
    "x",
  ),
  fc.oneof(
    fc.constantFrom(
      "",
      "x",
      "null",
      "*/*",
      "localhost",
      "evil.example",
      "http://localhost",
      "application/json",
      "text/event-stream",
      "Bearer x",
      "=?base64?eA==?=",
      "=?base64?x",
      "1.x",
    ),
    fc.constantFrom(...revisions, "2099-01-01", "tools/call", "good_add", "x".repeat(2_000), "\u00e9"),
  ),
  { maxKeys: 2 },
);
interface Posted {
  readonly frame: Frame;
  readonly odd: Readonly<Record<string, string>>;
}
const posted: fc.Arbitrary<Posted> = fc.record({
  frame,
  odd: fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: odd }),
});

function headersFor(way: Way, session: string | undefined, body: Buffer): RawHeaders {
  if (way === "alone") return {};
  if (way === "2025-11-25") return { "mcp-session-id": session, "mcp-protocol-version": way };
  const { method, params: given } = (parsed(body) ?? {}) as Fields;
  const toValue = (text: unknown) => (typeof text === "string" && /^[\x21-\x7e]+$/.test(text) ? text : undefined);
  return {
    "mcp-protocol-version": way,
    "mcp-method": toValue(method),
    "mcp-name": toValue(given?.name ?? given?.uri ?? given?.taskId),
  };
}

/** A stream that was asked for stays open, and what is behind it would wait. */
const isStream = (body: Buffer) => body.includes("subscriptions/listen");
const atOnce = 8;

function toPost(headers: RawHeaders, body: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(toRequest("POST /mcp HTTP/1.1", { ...usual, "content-length": String(body.length), ...headers })),
    body,
  ]);
}

async function talkOverHttp(way: Way, posts: readonly Posted[]): Promise<void> {
  const { url } = await open();
  const socket = await RawSocket.dial(url);
  const ask = async (message: object, headers: RawHeaders) =>
    await socket.send(toPost(headers, Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, ...message })))).answer();
  try {
    const session = way === "2025-11-25" ? (await ask(initialize, {})).headers["mcp-session-id"] : undefined;
    const bodies = posts.map((each) => ({ ...each, body: toLine(each.frame) })).filter(({ body }) => !isStream(body));
    sent += bodies.length;
    for (let at = 0; at < bodies.length; at += atOnce) {
      const some = bodies.slice(at, at + atOnce);
      for (const { body, odd: given } of some)
        socket.send(toPost({ ...headersFor(way, session, body), ...given }, body));
      for (const { body } of some) checkAnswer(await socket.answer(), dueTo(body));
    }
    const era = way === modernRevision ? way : "2025-11-25";
    const proper = properCall(era);
    expect(
      (await ask(proper, headersFor(way, session, Buffer.from(JSON.stringify(proper))))).messages,
      "the next call",
    ).toMatchObject([sum]);
    expect(socket.received).toBe("");
  } finally {
    socket.socket.destroy();
  }
}

function checkAnswer({ status, text, messages }: Awaited<ReturnType<RawSocket["answer"]>>, due: Due): void {
  const refuse = (why: string) => new Error(`${why}: ${status} ${text.slice(0, 500)}`);
  const answers = messages.filter((message) => isAnswer(message));
  if (answers.some(({ error }) => error?.code === -32603)) throw refuse("What a client does wrong is not our failure");
  if (status === 202) {
    if (due.answers === "one" || text !== "") throw refuse("Something is owed");
  } else if (status === 200) {
    if (answers.length !== 1 || due.answers === "none") throw refuse("One answer is due, to who asked");
    if (due.isRequest !== true || answers[0]?.id !== due.id)
      throw refuse(`This does not answer ${JSON.stringify(due.id)}`);
  } else {
    if (status < 400 || status >= 500) throw refuse("This is nobody's mistake but ours");
    const [{ id, error } = {}] = answers;
    if (answers.length !== 1 || error === undefined || (id !== null && due.id !== undefined && id !== due.id))
      throw refuse("This does not say what is wrong");
  }
}

/** Bytes that were a request. */
interface Broken {
  readonly method: string;
  readonly posted: Posted;
  readonly damage: readonly Damage[];
}
const broken: fc.Arbitrary<Broken> = fc.record({
  method: fc.constantFrom("POST", "POST", "POST", "GET", "DELETE", "HEAD", "OPTIONS", "PUT", "CONNECT"),
  posted,
  damage: fc.array(
    fc.record({
      kind: fc.constantFrom("cut", "drop", "insert", "double", "byte"),
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      letter: fc.constantFrom("\r", "\n", "\r\n", "\r\n\r\n", ":", " ", "\0", "\xff", "0", "9"),
    }),
    {
      maxLength: 4,
    },
  ),
});

async function sendBroken(all: readonly Broken[]): Promise<void> {
  const { url } = await open();
  const sockets = await Promise.all(all.map(() => RawSocket.dial(url)));
  sent += all.length;
  for (const [n, { method, posted: each, damage: damages }] of all.entries()) {
    const body = toLine(each.frame);
    const request = toRequest(
      `${method} /mcp HTTP/1.1`,
      { ...usual, "content-length": String(body.length), ...each.odd },
      body.toString("latin1"),
    );
    const text = Buffer.from(request, "latin1").toString("latin1");
    sockets[n]?.send(toLine({ text, id: "none", damage: damages }));
  }
  const proper = await RawSocket.dial(url);
  const message = properCall("2025-11-25");
  const { messages } = await proper
    .send(toPost({}, Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }))))
    .answer();
  expect(messages, "the next call").toMatchObject([sum]);
  for (const { socket, received } of [proper, ...sockets]) {
    expect(received.slice(0, 9)).toBe(received === "" ? "" : "HTTP/1.1 ");
    expect(received).not.toMatch(/^HTTP\/1\.1 5/);
    socket.destroy();
  }
}

// ---------------------------------------------------------------- the tests

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** What is alive, in MiB, once all that was asked is over. */
async function heapMib(): Promise<number> {
  for (let turn = 0; turn < 5; turn++) {
    await new Promise(setImmediate);
    collect();
  }
  return process.memoryUsage().heapUsed / 2 ** 20;
}

/** Sends so many frames; what stays after the second half is compared with what stayed after the first. */
async function fuzz<T extends unknown[]>(frames: number, property: fc.IAsyncProperty<T>): Promise<void> {
  const mib: number[] = [];
  for (let round = 0; mib.length < 2; mib.push(await heapMib())) {
    for (const end = sent + frames / 2; sent < end; round++)
      await fc.assert(property, { seed: seed + round, numRuns: 5, interruptAfterTimeLimit: 40_000 });
  }
  expect((mib[1] as number) - (mib[0] as number)).toBeLessThan(16);
}

afterAll(() => process.stderr.write(`${sent} frames of seed ${seed}\n`));

describe(`near-messages of seed ${seed}`, { timeout: guardMs }, () => {
  const talk = fc.array(frame, { minLength: 1, maxLength: 200, size: "max" });
  const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 100_000 })), {
    minLength: 1,
    maxLength: 8,
  });

  test.for(eras)("on a pipe that speaks %s", async (era) => {
    await fuzz(
      allFrames * 0.45,
      fc.asyncProperty(talk, sizes, (frames, pieces) => talkOverPipe(era, frames, pieces)),
    );
  });

  test.for(ways)("over HTTP: %s", async (way) => {
    const posts = fc.array(posted, { minLength: 1, maxLength: 40, size: "max" });
    await fuzz(
      allFrames * 0.028,
      fc.asyncProperty(posts, (given) => talkOverHttp(way, given)),
    );
  });

  test("over HTTP: heads and bodies that were damaged on the way", async () => {
    const all = fc.array(broken, { minLength: 1, maxLength: 30, size: "max" });
    await fuzz(allFrames * 0.016, fc.asyncProperty(all, sendBroken));
  });
});
