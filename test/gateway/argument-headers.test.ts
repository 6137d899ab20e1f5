import { expect, test } from "vitest";
import { openRuntime } from "../../src/runtime/runtime.ts";
import { loadSettings } from "../../src/settings/settings.ts";
import { cleanUp, temporaryFolder } from "../helpers/home.ts";
import { openDoors } from "../helpers/in-process.ts";
import { httpUpstream } from "../helpers/upstreams.ts";
import { overStreams, WireClient } from "../helpers/wire.ts";

test("1.4: a call refused because an argument is a header now is sent once more, as the list says now, and so are the next", async () => {
  const { url, seen } = await httpUpstream("marks-late", { ERA: "2026" });
  const [cwd, home] = [temporaryFolder(), temporaryFolder()];
  const flags = { wrap: { upstreams: { marked: { url } } } };
  const runtime = await openRuntime(await loadSettings({ cwd, env: { MEANWHILE_HOME: home }, flags }));
  const { stdin, stdout, close } = openDoors(runtime, cwd)();
  const client = await new WireClient(overStreams(stdin, stdout, close), { revision: "2026-07-28" }).begin();
  cleanUp(() => client.close());

  expect(await client.call("echo", { text: "one" })).toMatchObject({ content: [{ text: "one" }] });
  expect(await client.call("echo", { text: "two" })).toMatchObject({ content: [{ text: "two" }] });
  const calls = seen.filter(({ message }) => message.method === "tools/call");
  expect(calls.map(({ headers }) => headers["mcp-param-text"])).toEqual([undefined, "one", "two"]);
});
