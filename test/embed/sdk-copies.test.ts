import { cpSync, mkdirSync, symlinkSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { McpServer as ServerV1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { McpServer as ServerV2 } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import { z } from "zod";
import type { ConnectableServer } from "../../src/embed/server-host.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { doors, openWrapped } from "../helpers/wrapped.ts";

/** Every SDK that an author may have, in one process: messages are all that passes between them and us. */

const text = (words: string) => ({ content: [{ type: "text" as const, text: words }] });
const modules = path.resolve(import.meta.dirname, "../node_modules");

/** The first that could register a tool, and had no other way. */
interface EarlyServer extends ConnectableServer {
  tool(name: string, answer: () => unknown): void;
}
type EarlySdk = { readonly McpServer: new (info: object) => EarlyServer };

const early: Readonly<Record<string, () => Promise<unknown>>> = {
  "1.4.1": () => import("mcp-sdk-1.4.1/server/mcp.js"),
  "1.11.5": () => import("mcp-sdk-1.11.5/server/mcp.js"),
  "1.17.5": () => import("mcp-sdk-1.17.5/server/mcp.js"),
  "1.25.3": () => import("mcp-sdk-1.25.3/server/mcp.js"),
};

async function makeEarly(version: string, load: () => Promise<unknown>): Promise<ConnectableServer> {
  const { McpServer } = (await load()) as EarlySdk;
  const server = new McpServer({ name: version, version: "1.0.0" });
  server.tool("who", () => text(version));
  return server;
}

/** A second copy of SDK v2, as a package manager may leave it in a tree: its classes are others. */
async function copyV2(): Promise<typeof import("@modelcontextprotocol/server")> {
  const folder = temporaryFolder();
  const place = path.join(folder, "node_modules", "@modelcontextprotocol");
  mkdirSync(place, { recursive: true });
  cpSync(path.join(modules, "@modelcontextprotocol/server"), path.join(place, "server"), { recursive: true });
  for (const name of ["@modelcontextprotocol/core", "zod"])
    symlinkSync(path.join(modules, name), path.join(folder, "node_modules", name));
  return await import(pathToFileURL(path.join(place, "server/dist/index.mjs")).href);
}

test.each(Object.entries(early))("a server of SDK v1 %s answers clients of every era", async (version, load) => {
  const { connect } = await openWrapped(() => makeEarly(version, load));
  for (const [door, revision] of doors)
    expect(await (await connect(door, { revision })).call("who")).toMatchObject(text(version));
});

test("SDK v1, SDK v2 and a second copy of v2 side by side: each answers, and none knows of another", async () => {
  const { McpServer: Copy } = await copyV2();
  expect(Copy).not.toBe(ServerV2);
  const info = (name: string) => ({ name, version: "1.0.0" });
  const makers: Readonly<Record<string, () => ConnectableServer>> = {
    v1: () => {
      const server = new ServerV1(info("v1"));
      server.registerTool("who", { inputSchema: { word: z.string() } }, ({ word }) => text(`v1 ${word}`));
      return server;
    },
    v2: () => {
      const server = new ServerV2(info("v2"));
      server.registerTool("who", { inputSchema: z.object({ word: z.string() }) }, ({ word }) => text(`v2 ${word}`));
      return server;
    },
    copy: () => {
      const server = new Copy(info("copy"));
      server.registerTool("who", { inputSchema: z.object({ word: z.string() }) }, ({ word }) => text(`copy ${word}`));
      return server;
    },
  };
  for (const [name, make] of Object.entries(makers))
    for (const given of [make, make()]) {
      const { connect } = await openWrapped(given);
      for (const [door, revision] of doors)
        expect(await (await connect(door, { revision })).call("who", { word: "x" })).toMatchObject(text(`${name} x`));
    }
});
