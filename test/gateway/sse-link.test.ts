import { expect, test, vi } from "vitest";
import { serveLoopback } from "../client/loopback.ts";
import { httpUpstream } from "../helpers/upstreams.ts";
import { at, failureOf, talk } from "./talk.ts";

const first = "2024-11-05";

test.each(["sse", undefined] as const)("the transport of 2024-11-05, asked for or found out: %s", async (transport) => {
  const server = await httpUpstream("sse");
  const { begin, call, link } = await talk(at(server.url, { transport, headers: { "X-Key": "ours" } }));
  await begin(first);
  expect(await call("echo", { text: "old" })).toBe("old");
  expect(await call("ask")).toBe("Hello Ada");
  expect(server.seen.every(({ headers }) => headers["x-key"] === "ours")).toBe(true);
  expect(server.seen.filter(({ message }) => message.method === "tools/call")).toHaveLength(2);

  const slow = failureOf(call("slow", { seconds: 1_000 }));
  await vi.waitFor(() => expect(server.seen.at(-1)?.message.params?.name).toBe("slow"), { timeout: 50_000 });
  link.drop(server.seen.at(-1)?.message.id);
  expect((await slow).message).toBe("The request was taken back.");
});

test("its end is told, and so is what was under way", async () => {
  const server = await httpUpstream("sse");
  const { begin, call, peer } = await talk(at(server.url, { transport: "sse" }));
  await begin(first);
  const slow = failureOf(call("slow", { seconds: 1_000 }));
  await vi.waitFor(() => expect(server.seen.at(-1)?.message.params?.name).toBe("slow"), { timeout: 50_000 });
  await server.close();
  expect(await slow).toMatchObject({ isUnsent: false, isPassing: true });
  expect(await failureOf(peer.link.send({ id: 9, method: "ping" }))).toMatchObject({ isUnsent: true });
});

test("messages are posted to its own origin only", async () => {
  const server = await httpUpstream("sse-elsewhere");
  const error = await failureOf(talk(at(server.url, { transport: "sse" })));
  expect(error.message).toContain("wants messages posted to another origin, http://other.example");
  expect(error).toMatchObject({ isUnsent: true, isPassing: false });
});

test("a session that it has forgotten closes the link, and what was posted to it was not worked on", async () => {
  const server = await httpUpstream("sse");
  const { begin, call, peer } = await talk(at(server.url, { transport: "sse" }));
  await begin(first);
  server.forget();
  expect(await failureOf(call("echo", { text: "x" }))).toMatchObject({ status: 404, isUnsent: true });
  expect((await peer.closed).isPassing).toBe(true);
});

test.each([
  { status: 405, asked: ["POST", "GET"] },
  { status: 500, asked: ["POST"] },
])("where neither transport is, the answer to the newer one counts: $status", async ({ status, asked }) => {
  const methods: unknown[] = [];
  const { url } = await serveLoopback(({ request, response }) => {
    methods.push(request.method);
    response.writeHead(request.method === "POST" ? status : 404).end();
  });
  const { begin } = await talk(at(url, { transport: undefined }));
  expect(await failureOf(begin(first))).toMatchObject({ status });
  expect(methods).toEqual(asked);
});
