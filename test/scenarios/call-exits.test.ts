import { expect, test } from "vitest";
import { runCli, startCli } from "../helpers/cli.ts";
import { holdTimer } from "../helpers/hold-timer.ts";
import { methodNotFound, serveLines } from "../helpers/line-server.ts";

/** `meanwhile call` with servers that do not answer, or answer with something that is no result. */

/** A server of 2025-06-18 that does not answer one method, and gives every call this result. */
const serve = ({ silent = "", result }: { silent?: string; result?: unknown }) =>
  serveLines(({ method }) => {
    if (method === silent || silent === "all") return undefined;
    if (method === "server/discover") return methodNotFound;
    if (method === "tools/list") return { result: { tools: [{ name: "wait", inputSchema: { type: "object" } }] } };
    if (method === "tools/call") return { result } as never;
    const serverInfo = { name: "stubborn", version: "1" };
    return { result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo } };
  });

test.each([
  ["SIGINT", "SIGINT"],
  ["SIGTERM", "SIGTERM"],
  ["SIGHUP", "SIGINT"],
] as const)("%s cancels the call, and %s does not wait for its answer: exit 130", async (first, second) => {
  const server = await serve({ silent: "tools/call" });
  const call = startCli(["call", server.target, "wait"]);
  await server.has("tools/call");
  call.signal(first);
  await server.has("notifications/cancelled");
  call.signal(second);
  expect(await call.exited).toBe(130);
  expect(call.stdout()).toBe("");
});

test.each([
  ["connecting", "all", "server/discover"],
  ["listing the tools", "tools/list", "tools/list"],
  ["the call", "tools/call", "tools/call"],
])("--timeout covers %s: exit 124", async (_name, silent, method) => {
  const server = await serve({ silent });
  const fire = holdTimer(4_000);
  const call = startCli(["call", server.target, "wait", "--timeout", "4"]);
  await server.has(method);
  fire();
  expect(await call.exited).toBe(124);
  expect([call.stdout(), call.stderr()]).toEqual(["", "✗ Timed out after 4 s.\n"]);
});

test.each([["str"], [null], [[]]])("a result that is none is no success: %j", async (result) => {
  const { target } = await serve({ result });
  expect(await runCli(["call", target, "wait"])).toMatchObject({
    code: 1,
    stdout: "",
    stderr: "✗ Asked for tools/call, the server answered with something that is no result.\n",
  });
});
