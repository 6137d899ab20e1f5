/** In which folder an upstream is started. */
import { chmodSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { DaemonHomeHere } from "../helpers/daemon-here.ts";
import { serveGateway, textIn } from "../helpers/gateway.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { plainTool, scriptedUpstream } from "../helpers/scripted-upstream.ts";
import type { WireClient } from "../helpers/wire.ts";

/** An upstream whose tool `place` says where it was started, and with which words and variable. */
const upstream = () =>
  scriptedUpstream({
    tools: () => [plainTool("place")],
    answer: ({ id, method }, { cwd, argv, env }) => {
      if (method !== "tools/call") return undefined;
      const text = JSON.stringify({ cwd, words: argv, key: env.KEY });
      return [{ jsonrpc: "2.0", id, result: { content: [{ type: "text", text }] } }];
    },
  });

const placeOf = async (client: WireClient, tool = "place") => JSON.parse(textIn(await client.call(tool)) ?? "");

test.each(["2025-11-25", "2026-07-28"])("over HTTP it is the project's folder (%s)", async (revision) => {
  const cwd = writeFiles(temporaryFolder(), { key: "of the file" });
  chmodSync(path.join(cwd, "key"), 0o600);
  const { args, ...command } = upstream();
  const below = { ...command, args: [...args, "${workspaceFolder}/data"], cwd: "sub", env: { KEY: "file:key" } };
  const { connectHttp } = await serveGateway({
    config: { bundled: false, upstreamPrefix: "always", upstreams: { plain: upstream(), below } },
    cwd,
  });
  const client = await connectHttp(revision);
  expect(await placeOf(client, "plain_place")).toEqual({ cwd, words: [] });
  expect(await placeOf(client, "below_place")).toEqual({
    cwd: path.join(cwd, "sub"),
    words: [path.join(cwd, "data")],
    key: "of the file",
  });
});

test("over HTTP it is the folder of `wrap`", async () => {
  const { connectHttp, cwd } = await serveGateway({ wrap: { upstreams: { theirs: upstream() } } });
  expect(await placeOf(await connectHttp("2025-11-25"))).toMatchObject({ cwd });
});

test("in a daemon of `wrap` it is no other session's: the root for a session without a folder", async () => {
  const daemons = new DaemonHomeHere();
  const { command, args } = upstream();
  const words = ["wrap", "--", command, ...args];
  const client = await daemons.connect({ words });
  expect(await placeOf(client)).toMatchObject({ cwd: daemons.cwd });
  // The home is no session's folder.
  expect(await placeOf(await daemons.connect({ words, cwd: daemons.home }))).toMatchObject({ cwd: path.resolve("/") });
  expect(daemons.daemons).toHaveLength(1);
});
