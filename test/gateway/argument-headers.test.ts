import { expect, test } from "vitest";
import { openServer } from "../helpers/server.ts";
import { httpUpstream } from "../helpers/upstreams.ts";

test("1.4: a call refused because an argument is a header now is sent once more, as the list says now, and so are the next", async () => {
  const { url, seen } = await httpUpstream("marks-late", { ERA: "2026" });
  const server = await openServer({ in: "memory", wrap: { upstreams: { marked: { url } } } });
  const client = await server.client("2026-07-28");

  expect(await client.call("echo", { text: "one" })).toMatchObject({ content: [{ text: "one" }] });
  expect(await client.call("echo", { text: "two" })).toMatchObject({ content: [{ text: "two" }] });
  const calls = seen.filter(({ message }) => message.method === "tools/call");
  expect(calls.map(({ headers }) => headers["mcp-param-text"])).toEqual([undefined, "one", "two"]);
});
