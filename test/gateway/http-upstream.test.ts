import { describe, expect, test, vi } from "vitest";
import type { Authorizer } from "../../src/gateway/upstream-link.ts";
import { type Received, serveLoopback } from "../client/loopback.ts";
import { httpUpstream } from "../helpers/upstreams.ts";
import { at, failureOf, talk } from "./talk.ts";

const waiting = { timeout: 50_000 };
type Served = Awaited<ReturnType<typeof httpUpstream>>;
const methodsOf = ({ seen }: Served) => seen.map(({ method, message }) => message.method ?? method);
const callsOf = (server: Served) => methodsOf(server).filter((method) => method === "tools/call").length;

test("a call, a question in its stream and the server's own messages: each says whose stream it came on", async () => {
  const { url } = await httpUpstream("unasked");
  const { begin, call, heard } = await talk(at(url));
  await begin();
  expect(await call("ask")).toBe("Hello Ada");
  const question = heard.find(({ message }) => message.id === "q1");
  expect(question?.about).toBe(
    heard.find(({ message }) => message.result !== undefined && message.id !== 1)?.message.id,
  );
  await vi.waitFor(
    () => expect(heard.filter(({ message }) => /^u\d$/.test(String(message.id)))).toHaveLength(3),
    waiting,
  );
  expect(heard.filter(({ message }) => /^u\d$/.test(String(message.id))).map(({ about }) => about)).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

describe("5: a session that the server forgets", () => {
  test("is begun again with the same words, once for all who find it lost, and nobody notices", async () => {
    const server = await httpUpstream("forgets-session", { FORGET_EVERY: "4" });
    const { begin, call, renewals } = await talk(at(server.url));
    await begin();
    const texts = Array.from({ length: 12 }, (_, count) => `t${count}`);
    for (const text of texts) expect(await call("echo", { text })).toBe(text);
    expect(renewals()).toBeGreaterThan(2);
    const hellos = server.seen.filter(({ message }) => message.method === "initialize");
    expect(hellos).toHaveLength(1 + renewals());
    expect(new Set(hellos.map(({ message }) => JSON.stringify(message))).size).toBe(1);
    const told = methodsOf(server).filter((method) => method === "notifications/initialized");
    expect(told).toHaveLength(hellos.length);
  });

  test("parallel calls begin one new session between them", async () => {
    const server = await httpUpstream();
    const { begin, call, renewals } = await talk(at(server.url));
    await begin();
    server.forget();
    const texts = ["a", "b", "c", "d"];
    expect(await Promise.all(texts.map((text) => call("echo", { text })))).toEqual(texts);
    expect(renewals()).toBe(1);
    expect(methodsOf(server).filter((method) => method === "initialize")).toHaveLength(2);
  });

  test("somebody who hears of it late uses the session that was begun since", async () => {
    const sessions: unknown[] = [];
    const isUsed = Promise.withResolvers<void>();
    const { url } = await serveLoopback(async ({ request, response, message: { id, method, params } }) => {
      if (method === "initialize") sessions.push(`s${sessions.length}`);
      else if (request.method !== "POST" || id === undefined) return void response.writeHead(202).end();
      const isLost = method !== "initialize" && request.headers["mcp-session-id"] === "s0";
      if (isLost && params?.name === "late") await isUsed.promise;
      if (method !== "initialize" && !isLost) isUsed.resolve();
      const result = { protocolVersion: "2025-11-25", content: [{ type: "text", text: params?.name }] };
      const headers = { "content-type": "application/json", "mcp-session-id": String(sessions.at(-1)) };
      response.writeHead(isLost ? 404 : 200, headers).end(isLost ? "" : JSON.stringify({ jsonrpc: "2.0", id, result }));
    });
    const { begin, call } = await talk(at(url));
    await begin();
    expect(await Promise.all([call("late"), call("early")])).toEqual(["late", "early"]);
    expect(sessions).toEqual(["s0", "s1"]);
  });

  test("is known by the words of the SDK's examples, too", async () => {
    let session = 0;
    const { url } = await serveLoopback(({ request, response, message }) => {
      const { id, method } = message;
      const isOld = request.headers["mcp-session-id"] !== `s${session}`;
      if (method === "initialize") response.setHeader("mcp-session-id", `s${++session}`);
      else if (request.method !== "POST" || id === undefined) return void response.writeHead(202).end();
      const result = { protocolVersion: "2025-11-25", content: [{ type: "text", text: `in s${session}` }] };
      const error = { code: -32000, message: "Bad Request: No valid session ID provided" };
      const isRefused = method !== "initialize" && isOld;
      response.writeHead(isRefused ? 400 : 200, { "content-type": "application/json" });
      response.end(
        JSON.stringify({ jsonrpc: "2.0", id: isRefused ? null : id, ...(isRefused ? { error } : { result }) }),
      );
    });
    const { begin, call, renewals } = await talk(at(url));
    await begin();
    session++;
    expect(await call("echo")).toBe("in s3");
    expect(renewals()).toBe(1);
  });

  test("a server that forgets each at once is not asked for ever", async () => {
    const server = await httpUpstream("forgets-session", { FORGET_EVERY: "1" });
    const { begin, call } = await talk(at(server.url));
    await begin();
    expect(await failureOf(call("echo", { text: "a" }))).toMatchObject({ status: 404, isUnsent: true });
    expect(callsOf(server)).toBe(2);
  });

  test("one that cannot be begun again is said so, and nothing was sent", async () => {
    let isFirst = true;
    const { url } = await serveLoopback(({ request, response, message }: Received) => {
      if (message.method !== "initialize")
        return void response.writeHead(message.id === undefined || request.method !== "POST" ? 202 : 404).end();
      response.writeHead(isFirst ? 200 : 403, { "content-type": "application/json", "mcp-session-id": "s1" });
      const result = { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "s", version: "1" } };
      response.end(isFirst ? JSON.stringify({ jsonrpc: "2.0", id: message.id, result }) : "");
      isFirst = false;
    });
    const { begin, call } = await talk(at(url));
    await begin();
    const error = await failureOf(call("echo", { text: "a" }));
    expect(error.message).toMatch(/has forgotten our session, and a new one cannot be begun: .*403/);
    expect(error.isUnsent).toBe(true);
  });
});

describe("a token", () => {
  const authorizer = (tokens: string[]): Authorizer & { challenges: (string | undefined)[] } => {
    let token = tokens.shift();
    const challenges: (string | undefined)[] = [];
    return {
      challenges,
      header: async () => token && `Bearer ${token}`,
      refused: async (challenge) => {
        challenges.push(challenge);
        token = tokens.shift();
        return token !== undefined;
      },
    };
  };

  test("is got anew once when it is refused, and the request sent once more", async () => {
    const server = await httpUpstream("wants-token", { TOKEN: "new" });
    const tokens = authorizer(["old", "new"]);
    const { begin, call } = await talk(at(server.url, { authorizer: tokens }));
    await begin();
    expect(await call("echo", { text: "in" })).toBe("in");
    expect(tokens.challenges).toEqual(['Bearer resource_metadata="http://127.0.0.1/metadata"']);
    expect(methodsOf(server).slice(0, 2)).toEqual(["initialize", "initialize"]);
  });

  test("that is still refused ends the request, which was never worked on", async () => {
    const server = await httpUpstream("wants-token", { TOKEN: "other" });
    const { begin } = await talk(at(server.url, { authorizer: authorizer(["old", "new", "newer"]) }));
    const error = await failureOf(begin());
    expect(error).toMatchObject({ status: 401, isUnsent: true, isPassing: false });
    expect(error.message).not.toContain("new");
    expect(server.seen).toHaveLength(2);
  });
});

test("a call that is too much right now is made later, and one that failed is not made again", async () => {
  const busy = await httpUpstream("busy", { RETRY_AFTER: "0" });
  const { begin, call } = await talk(at(busy.url));
  await begin();
  expect(await call("echo", { text: "later" })).toBe("later");
  expect(callsOf(busy)).toBe(2);

  const tooBusy = await httpUpstream("busy", { RETRY_AFTER: "61" });
  const impatient = await talk(at(tooBusy.url));
  await impatient.begin();
  expect(await failureOf(impatient.call("echo", { text: "never" }))).toMatchObject({
    status: 429,
    isUnsent: true,
    retryAfterMs: 61_000,
  });

  const broken = await httpUpstream("error-500");
  const other = await talk(at(broken.url));
  await other.begin();
  expect(await failureOf(other.call("echo", { text: "once" }))).toMatchObject({ status: 500, isUnsent: false });
  expect(callsOf(broken)).toBe(1);
});

test("what only looks, and finds the connection that was kept for it gone, is asked again on another", async () => {
  const used = new WeakSet<object>();
  const asked: (string | undefined)[] = [];
  const { url } = await serveLoopback(({ request, response, message: { id, method } }) => {
    if (request.method !== "POST") return void response.writeHead(405).end();
    asked.push(method);
    // As one that has closed it just as the request came.
    if (used.has(request.socket)) return void request.socket.destroy();
    used.add(request.socket);
    if (id === undefined) return void response.writeHead(202).end();
    const result = { protocolVersion: "2025-11-25", capabilities: {}, tools: [], content: [] };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  });
  const { begin, call, peer } = await talk(at(url));
  await begin();
  for (let round = 0; round < 3; round++) expect(await peer.request("tools/list", {})).toMatchObject({ tools: [] });
  await call("count");
  expect(asked.filter((method) => method === "tools/call")).toHaveLength(1);
  expect(asked.filter((method) => method === "tools/list").length).toBeGreaterThan(3);
});

test("another origin is never followed: the sentence says where it leads, and nothing of ours goes there", async () => {
  const other = await httpUpstream();
  const server = await httpUpstream("redirect", { REDIRECT_TO: other.origin });
  const { begin } = await talk(at(server.url, { headers: { "X-Key": "ours" } }));
  const error = await failureOf(begin());
  expect(error.message).toContain(`if you trust it, use ${other.origin}/mcp as the url.`);
  expect(error.message).not.toContain("secret");
  expect(other.seen).toEqual([]);
});

test("nobody there, a wrong certificate, no address: one sentence each, and nothing was sent", async () => {
  const { url } = await httpUpstream("bad-certificate");
  const refused = await failureOf((await talk(at(url))).begin());
  expect(refused).toMatchObject({ isUnsent: true, isPassing: false });
  expect(refused.message).toMatch(
    /^https:.* cannot be trusted: its certificate is not one that this machine believes \(DEPTH_ZERO_SELF_SIGNED_CERT\)/,
  );

  const gone = await httpUpstream();
  await gone.close();
  const nobody = await failureOf((await talk(at(gone.url))).begin());
  expect(nobody.message).toContain("Nothing listens there");
  expect(nobody.isUnsent).toBe(true);

  expect(await failureOf(talk(at("ftp://nowhere")))).toMatchObject({ isUnsent: true, isPassing: false });
});

test("closed twice, it ends its session once", async () => {
  const server = await httpUpstream();
  const { begin, link } = await talk(at(server.url));
  await begin();
  await Promise.all([link.close(), link.close()]);
  expect(methodsOf(server).filter((method) => method === "DELETE")).toHaveLength(1);
});

test("a request that is dropped ends its stream, and the link goes on", async () => {
  const server = await httpUpstream();
  const { begin, call, link } = await talk(at(server.url));
  await begin();
  const slow = failureOf(call("slow", { seconds: 1_000 }));
  await vi.waitFor(() => expect(callsOf(server)).toBe(1), waiting);
  link.drop(server.seen.find(({ message }) => message.method === "tools/call")?.message.id);
  expect((await slow).message).toBe("The request was taken back.");
  expect(await call("echo", { text: "on" })).toBe("on");
});

describe("a stream with event ids", () => {
  test("that breaks is taken up where it broke", async () => {
    const server = await httpUpstream("resumable");
    const { begin, call } = await talk(at(server.url));
    await begin();
    expect(await call("count", { seconds: 0.1 })).toBe("counted");
    expect(callsOf(server)).toBe(1);
  });

  test("is taken up by another link in the session of the first, questions and all, after a crash of ours", async () => {
    const server = await httpUpstream("resumable");
    const first = await talk(at(server.url), { isMute: true });
    await first.begin();
    const message = { id: 77, method: "tools/call", params: { name: "ask", arguments: {} } };
    const lost = new AbortController();
    const sent = first.link.send(message, { signal: lost.signal }).catch(() => undefined);
    // What was asked and not answered is to be asked again.
    await vi.waitFor(() => expect(first.heard.some((one) => one.message.id === "q1")).toBe(true), waiting);
    lost.abort(new Error("as if we had crashed"));
    await sent;
    const mark = first.marks.get(77);
    expect(mark).toMatchObject({ session: expect.any(String), revision: "2025-11-25" });

    const second = await talk(at(server.url));
    await second.begin();
    await second.link.resume?.(message, mark as NonNullable<typeof mark>);
    const answer = second.heard.find((one) => one.message.id === 77);
    expect(answer).toMatchObject({ about: 77, message: { result: { content: [{ text: "Hello Ada" }] } } });
    // What was answered went to the session that had asked.
    const reply = server.seen.find((one) => one.message.result !== undefined);
    expect(reply?.headers["mcp-session-id"]).toBe(mark?.session);
    expect(callsOf(server)).toBe(1);
    expect(second.marks.get(77)?.lastEventId).not.toBe(mark?.lastEventId);
  });

  test("that the server does not know any more is said to be lost, not unsent", async () => {
    const server = await httpUpstream("resumable");
    const { begin, link } = await talk(at(server.url));
    await begin();
    const mark = { session: "gone", revision: "2025-11-25", lastEventId: "x_1" };
    const error = await failureOf(link.resume?.({ id: 5, method: "tools/call" }, mark) as Promise<void>);
    expect(error).toMatchObject({ status: 404, isUnsent: false });
  });
});
