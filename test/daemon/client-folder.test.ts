import { once } from "node:events";
import { createConnection } from "node:net";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { defineCommand } from "../../src/command/command.ts";
import { dataOf } from "../helpers/daemon.ts";
import { cleanUp, temporaryFolder } from "../helpers/home.ts";
import { openServer } from "../helpers/server.ts";
import { type Json, overStreams, WireClient } from "../helpers/wire.ts";

/** The working folder of a client that connects to a daemon's socket itself. */

const where = defineCommand({
  summary: "Say the folder of the caller",
  effects: "read",
  run: (_input, task) => ({ folder: task.origin.folder ?? null }),
});
const folderKey = "meanwhile/folder";
const refusal = `\`_meta["${folderKey}"]\` must be the absolute path of a folder other than the root of the file system.`;

/** A client on the socket of a new daemon, before its handshake. */
async function connect(revision: string, capabilities: object = {}): Promise<WireClient> {
  const server = await openServer({ in: "daemon", commands: { where } });
  const { daemon } = await server.daemons.start(["--no-bundled"]);
  const socket = createConnection(daemon?.socket ?? "");
  await once(socket, "connect");
  const close = async () => void socket.destroy();
  cleanUp(close);
  return new WireClient(overStreams(socket, socket, close), { revision, capabilities });
}

/** The handshake of 2025-11-25, with this `_meta`. */
async function greet(client: WireClient, { meta = {}, capabilities = {} }: { meta?: Json; capabilities?: Json } = {}) {
  const { revision: protocolVersion } = client;
  const clientInfo = { name: "raw", version: "1" };
  return await client.request("initialize", { protocolVersion, capabilities, clientInfo, _meta: meta });
}

const folderOf = async (client: WireClient, meta?: Json) =>
  dataOf<{ readonly folder: string | null }>(await client.call("where", {}, meta === undefined ? {} : { meta })).folder;

test("takes the folder that a client of 2025-11-25 names in `initialize`, until it names another", async () => {
  const [one, other] = [temporaryFolder(), temporaryFolder()];
  const client = await connect("2025-11-25");
  await greet(client, { meta: { [folderKey]: one } });
  expect(await folderOf(client)).toBe(one);
  expect(await folderOf(client, { [folderKey]: other })).toBe(other);
  expect(await folderOf(client)).toBe(other);
});

test("takes the folder that a client of 2026-07-28 names in a request", async () => {
  const folder = temporaryFolder();
  const client = await connect("2026-07-28", { roots: {} });
  expect(await folderOf(client)).toBe(null);
  expect(await folderOf(client, { [folderKey]: folder })).toBe(folder);
  expect(client.of("roots/list")).toEqual([]);
});

test("takes the first root that is a folder, and asks again only after roots/list_changed", async () => {
  const [one, other] = [temporaryFolder(), temporaryFolder()];
  const client = await connect("2025-11-25", { roots: {} });
  const rootsOf = (folder: string) => ({
    roots: [{ uri: "https://example.org/" }, { uri: "file:///" }, null, { uri: pathToFileURL(folder).href }],
  });
  let roots = rootsOf(one);
  client.onMessage(({ id, method }) => {
    if (method === "roots/list") void client.respond(id, roots);
  });
  await greet(client, { capabilities: { roots: { listChanged: true } } });
  expect(client.of("roots/list")).toHaveLength(0);
  expect([await folderOf(client), await folderOf(client)]).toEqual([one, one]);
  expect(client.of("roots/list")).toHaveLength(1);
  roots = rootsOf(other);
  await client.notify("notifications/roots/list_changed");
  expect([await folderOf(client), await folderOf(client)]).toEqual([other, other]);
  expect(client.of("roots/list")).toHaveLength(2);
});

test("a client that answers roots/list with an error has no folder", async () => {
  const client = await connect("2025-11-25");
  client.onMessage(({ id, method }) => {
    if (method === "roots/list") void client.fail(id, { code: -32_603, message: "No." });
  });
  await greet(client, { capabilities: { roots: {} } });
  expect(await folderOf(client)).toBe(null);
});

test.each([[7], [""], ["notes"], ["/"], ["/a\0b"], [["/a"]], [null]])(
  "refuses %j as a folder, and keeps the folder that it had",
  async (said) => {
    const folder = temporaryFolder();
    const client = await connect("2025-11-25");
    expect((await greet(client, { meta: { [folderKey]: said } })).error).toMatchObject({
      code: -32_602,
      message: refusal,
    });
    await greet(client, { meta: { [folderKey]: folder } });
    const { error } = await client.startCall("where", {}, { meta: { [folderKey]: said } }).answer;
    expect(error).toMatchObject({ code: -32_602, message: refusal });
    expect(await folderOf(client)).toBe(folder);
  },
);

test("a client of a stdio proxy has the folder of the proxy, whatever it names", async () => {
  const server = await openServer({ in: "daemon", commands: { where } });
  const client = await server.client("2025-11-25");
  expect(await folderOf(client, { [folderKey]: path.parse(server.cwd).root })).toBe(server.cwd);
  expect(await folderOf(client, { [folderKey]: temporaryFolder() })).toBe(server.cwd);
});

test("a client over HTTP has no folder, whatever it names", async () => {
  const server = await openServer({ in: "http", commands: { where } });
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    const client = await server.client(revision);
    expect(await folderOf(client, { [folderKey]: temporaryFolder() })).toBe(null);
  }
});
