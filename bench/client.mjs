// The one client that measures every server: our wire's headers and events, and no SDK. It checks every answer, so that
// a server which answers wrongly fails the run instead of winning it. Lines, messages and requests in flight are read
// and kept by hand here, and nowhere else: the wire's own, which trust nobody, take twice the processor time for each
// call, and what is measured is not the client.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { acceptBoth, isEventStream, subjectHeaders } from "../src/wire/http-client.ts";
import { toEnvelope } from "../src/wire/request-envelope.ts";
import { legacyRevision, modernRevision } from "../src/wire/revisions.ts";
import { EventReader } from "../src/wire/sse.ts";
import { HttpLanes } from "./http-lanes.mjs";
import { median } from "./report.mjs";

const answerTimeoutMs = 30_000;
const exitTimeoutMs = 3_000;
const clientInfo = { name: "bench", version: "1.0.0" };
const modernMeta = toEnvelope(clientInfo, {});

const running = new Set();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

/** A started server: its process, what it said on stderr, and a promise that rejects when it ends too early. */
class ServerProcess {
  #stderr = "";
  #isStopping = false;
  #pids;

  constructor(words, env) {
    this.child = spawn(process.execPath, words, { env, stdio: ["pipe", "pipe", "pipe"] });
    running.add(this.child);
    this.child.stdin.on("error", () => {});
    this.child.stderr.setEncoding("utf8").on("data", (text) => {
      this.#stderr = (this.#stderr + text).slice(-4_000);
    });
    this.exited = new Promise((resolve) => this.child.once("exit", resolve));
    this.broken = this.exited.then((code) => {
      running.delete(this.child);
      if (!this.#isStopping) throw new Error(`${words.join(" ")} ended with ${code}: ${this.#stderr}`);
    });
    this.broken.catch(() => {});
  }

  /** What `promise` gives, unless the server ends or stays silent. */
  async expect(promise, what) {
    let timer;
    const silent = new Promise((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`${what}: no answer in ${answerTimeoutMs / 1000} s; stderr: ${this.#stderr}`)),
        answerTimeoutMs,
      );
    });
    try {
      return await Promise.race([promise, this.broken, silent]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** The address an HTTP server prints when it listens; one that prints none is tried until it does. */
  url(known) {
    if (known !== undefined) return this.expect(untilListening(known), known);
    const listening = new Promise((resolve) => {
      this.child.stderr.on("data", () => {
        const [url] = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(this.#stderr) ?? [];
        if (url !== undefined) resolve(url);
      });
    });
    this.child.stdout.resume();
    return this.expect(listening, "the address");
  }

  /** Resident memory in megabytes; undefined where there is no /proc. */
  residentMb() {
    try {
      return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${this.child.pid}/status`, "utf8"))?.[1]) * 0.001024;
    } catch {
      return undefined;
    }
  }

  /** Counts from now on all processes whose environment has `mark`, a daemon that has left the tree among them. */
  countAll(mark) {
    this.#pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && hasInEnvironment(name, mark));
    return this.#pids.length;
  }

  /** Processor time that all its threads have used so far, in milliseconds; undefined where there is no /proc. */
  cpuMs() {
    try {
      return (this.#pids ?? [this.child.pid]).reduce((sum, pid) => sum + cpuMsOf(pid), 0);
    } catch {
      return undefined;
    }
  }

  /** Ends it as a client would, by closing its input or with `signal`; kills it when that is not enough. */
  async stop(signal) {
    this.#isStopping = true;
    this.child.stdin.end();
    if (signal !== undefined) this.child.kill(signal);
    const timer = setTimeout(() => this.child.kill("SIGKILL"), exitTimeoutMs);
    await this.exited;
    clearTimeout(timer);
    running.delete(this.child);
  }
}

function cpuMsOf(pid) {
  const folder = `/proc/${pid}/task`;
  const ofThread = (thread) => Number(readFileSync(`${folder}/${thread}/schedstat`, "utf8").split(" ")[0]);
  return readdirSync(folder).reduce((sum, thread) => sum + ofThread(thread), 0) / 1e6;
}

function hasInEnvironment(pid, mark) {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(mark);
  } catch {
    return false;
  }
}

async function untilListening(url) {
  const { hostname, port } = new URL(url);
  for (;;) {
    const socket = connect(Number(port), hostname);
    const isThere = await once(socket, "connect").then(
      () => true,
      () => new Promise((resolve) => setTimeout(resolve, 50, false)),
    );
    socket.destroy();
    if (isThere) return url;
  }
}

/** What every server but those that say otherwise is called with. */
const echoText = (text) => ({ name: "echo_text", arguments: { text } });

/** Starts a server and shakes hands with it over stdio. */
export async function openStdio(server, env) {
  const started = new ServerProcess(server.stdio, env);
  const { child } = started;
  const waiting = new Map();
  let lastId = 0;
  let unread = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    const lines = (unread + text).split("\n");
    unread = lines.pop();
    for (const line of lines) {
      const message = JSON.parse(line);
      // Requests and notifications of the server's own are of no interest here.
      if (message.method !== undefined) continue;
      waiting.get(message.id)?.(message);
      waiting.delete(message.id);
    }
  });
  const send = (message) => child.stdin.write(`${JSON.stringify(message)}\n`);
  const request = (method, params) =>
    new Promise((resolve) => {
      const id = ++lastId;
      waiting.set(id, resolve);
      send({ jsonrpc: "2.0", id, method, params });
    });
  await started
    .expect(request("initialize", { protocolVersion: legacyRevision, capabilities: {}, clientInfo }), "initialize")
    .then(checkInitialize);
  send({ jsonrpc: "2.0", method: "notifications/initialized" });
  return {
    process: started,
    call: async (text) => checkEcho(await request("tools/call", (server.ask ?? echoText)(text)), text, server),
    /** Another request than the call; the answer is for the caller to check. */
    request: (method, params) => started.expect(request(method, params), method),
    close: () => started.stop(),
  };
}

/**
 * Starts a server on a free port; `revision` is "2026-07-28" (no handshake) or "2025-11-25" (a session). `authorize`
 * returns the Authorization header of a request; default: none is sent.
 */
export async function openHttp(server, env, { revision, authorize }) {
  const started = new ServerProcess(server.http, env);
  const lanes = new HttpLanes(await started.url(server.url));
  const baseHeaders = { "content-type": "application/json", ...acceptBoth };
  let lastId = 0;
  const credential = authorize === undefined ? () => undefined : () => ({ authorization: authorize() });
  const post = (message, headers) =>
    lanes.post(JSON.stringify(message), { ...baseHeaders, ...credential(), ...headers });
  const request = async (method, params, headers) => {
    const id = ++lastId;
    const answer = await post({ jsonrpc: "2.0", id, method, params }, headers);
    return { answer, message: findMessage(answer, id) };
  };
  const isModern = revision === modernRevision;
  let session;
  const headersOf = (method, params) => subjectHeaders({ revision, session, method, params });
  if (!isModern) {
    const begin = request("initialize", { protocolVersion: legacyRevision, capabilities: {}, clientInfo });
    const { answer, message } = await started.expect(begin, "initialize");
    checkInitialize(message);
    session = answer.header("mcp-session-id");
    if (session === undefined) throw new Error(`${server.name} gave no session`);
    await started.expect(
      post({ jsonrpc: "2.0", method: "notifications/initialized" }, headersOf("notifications/initialized")),
      "initialized",
    );
  }
  const ask = server.ask ?? echoText;
  const callHeaders = headersOf("tools/call", ask(""));
  return {
    process: started,
    async call(text) {
      const params = { ...ask(text), ...(isModern && { _meta: modernMeta }) };
      const { message } = await request("tools/call", params, callHeaders);
      checkEcho(message, text, server);
    },
    /** Another request than the call, on 2026-07-28. The answer is for the caller to check. */
    async request(method, params, capabilities) {
      const { message } = await request(
        method,
        { ...params, _meta: toEnvelope(clientInfo, capabilities) },
        headersOf(method, params),
      );
      return message;
    },
    async close() {
      lanes.close();
      await started.stop("SIGTERM");
    },
  };
}

/** Makes `count` calls, `width` of them at any time; gives calls a second, how long one took, and the server's processor time. */
export async function measureCalls(client, { count, width }) {
  const cpuMsBefore = client.process.cpuMs();
  const startedAt = performance.now();
  const took = [];
  let next = 0;
  const lane = async () => {
    let begunAt = startedAt;
    while (next < count) {
      await client.call(`text number ${next++}`);
      const now = performance.now();
      took.push(now - begunAt);
      begunAt = now;
    }
  };
  await client.process.expect(Promise.all(Array.from({ length: width }, lane)), `${count} calls`);
  return {
    callsPerSecond: count / ((performance.now() - startedAt) / 1000),
    p50Us: median(took) * 1000,
    cpuMs: client.process.cpuMs() - cpuMsBefore,
  };
}

/** Runs a program to its end; gives the milliseconds it took. */
export async function measureProgram(words, { env, cwd, expected }) {
  const startedAt = performance.now();
  const child = spawn(process.execPath, words, { env, cwd, stdio: ["ignore", "pipe", "inherit"] });
  running.add(child);
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    printed += text;
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  running.delete(child);
  if (code !== 0 || !printed.includes(expected))
    throw new Error(`${words.join(" ")} ended with ${code} and printed: ${printed}`);
  return performance.now() - startedAt;
}

/** The answer to one request, from a JSON body or from a stream of server-sent events. */
function findMessage({ status, header, body }, id) {
  const events = isEventStream(header("content-type"))
    ? new EventReader().push(body)
    : [{ data: body.toString("utf8") }];
  const texts = status === 200 ? events.map(({ data }) => data).filter((data) => data !== "") : [];
  const message = texts.map((text) => JSON.parse(text)).find((item) => item.id === id && item.method === undefined);
  if (!message) throw new Error(`HTTP ${status} without an answer to request ${id}: ${body.toString("utf8", 0, 500)}`);
  return message;
}

function checkInitialize(message) {
  if (message.result?.protocolVersion !== legacyRevision)
    throw new Error(`initialize was answered with ${JSON.stringify(message)}`);
}

function checkEcho(message, text, server) {
  const { structuredContent, isError, content } = message.result ?? {};
  const isRight =
    isError !== true && content?.[0]?.text.includes(text) && server.echoed(structuredContent ?? {}, content) === text;
  if (!isRight)
    throw new Error(`${server.name} was sent ${JSON.stringify(text)} and answered ${JSON.stringify(message)}`);
}
