import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../src/client/index.ts";
import { closest } from "../../src/client/tool-list.ts";
import { answer, legacy, type Received, serveLoopback, text } from "./loopback.ts";

const tools = [{ name: "echo", inputSchema: { type: "object" }, execution: { taskSupport: "optional" } }];

/** A server whose list of tools is held back until it is let go. */
async function slowList() {
  const asked: Received[] = [];
  const first = Promise.withResolvers<void>();
  const server = legacy({
    "tools/list": (received) => {
      asked.push(received);
      first.resolve();
    },
    "tools/call": (received) => answer(received, text("done")),
  });
  const { url } = await serveLoopback(server.handle);
  const client = await connect({ url });
  onTestFinished(() => client.close());
  return { client, asked, isAsked: first.promise, seen: server.seen };
}

test("one who gives up on the list of tools leaves it to the others who wait for it", async () => {
  const { client, asked, isAsked, seen } = await slowList();
  const stop = new AbortController();
  const first = client.callTool("echo", {}, { signal: stop.signal });
  const second = client.callTool("echo", {});
  await isAsked;
  stop.abort(new Error("not wanted any more"));
  await expect(first).rejects.toThrow("not wanted any more");
  for (const received of asked) answer(received, { tools });
  expect(await second).toMatchObject({ content: [{ text: "done" }] });
  expect(seen.filter((method) => method === "tools/list")).toHaveLength(1);
  expect(seen.filter((method) => method === "tools/call")).toHaveLength(1);
});

test.each([
  ["vault_idnex", "vault_index"],
  ["vaultindex", "vault_index"],
  ["ehco", "echo"],
  ["xyz", undefined],
])("for %s the nearest tool is %s", (name, expected) => {
  expect(closest(name, ["echo", "vault_index", "vault_status"])).toBe(expected);
});
