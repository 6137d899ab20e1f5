import path from "node:path";
import { describe, expect, test } from "vitest";
import type { UpstreamConfig } from "../../../src/project/upstream-config.ts";
import { essence } from "../../helpers/allowed-differences.ts";
import { connectCommand, connectUrl, sdkCommand, sdkUrl, wrapHere } from "../../helpers/gateway-here.ts";
import { shareAmongTests } from "../../helpers/home.ts";
import { asker, type Portrait, portray, type Sitter } from "../../helpers/portrait.ts";
import { casesOf } from "../../helpers/rounds.ts";
import { serveExample } from "../../helpers/sdk-examples.ts";

/** A server as it is, and behind `wrap`: one portrait of each, and they are the same. */

const sdk: Sitter = {
  calls: [
    ["echo", { text: "hello", times: 2 }],
    ["fail", {}],
    ["link", {}],
    ["work", {}],
    ["ask", {}],
    ["echo", {}],
    ["nothing", {}],
  ],
  reads: ["sdk://text", "sdk://city/Bern", "sdk://nothing"],
  prompts: [
    ["visit", { city: "Bern" }],
    ["nothing", {}],
  ],
  completions: [
    { ref: { type: "ref/prompt", name: "visit" }, argument: { name: "city", value: "Be" } },
    { ref: { type: "ref/resource", uri: "sdk://city/{city}" }, argument: { name: "city", value: "P" } },
  ],
  watched: { uri: "sdk://text", call: ["touch", { uri: "sdk://text" }] },
  logged: { call: ["log", {}], words: "one line" },
};

const text = "demo://resource/dynamic/text/1";
const everything: Sitter = {
  calls: [
    ["echo", { message: "hello" }],
    ["get-annotated-message", { messageType: "error", includeImage: true }],
    ["get-resource-links", { count: 2 }],
    ["get-resource-reference", { resourceType: "Text", resourceId: 1 }],
    ["get-structured-content", { location: "Chicago" }],
    ["get-sum", { a: 1, b: 2 }],
    ["get-sum", { a: "x" }],
    ["get-tiny-image", {}],
    ["gzip-file-as-resource", { name: "a.gz", data: "data:text/plain,hello", outputType: "resource" }],
    ["trigger-elicitation-request", {}],
    ["trigger-long-running-operation", { duration: 0.1, steps: 1 }],
    ["trigger-sampling-request", { prompt: "Say something", maxTokens: 10 }],
    ["trigger-url-elicitation", { url: "https://example.com", elicitationId: "x" }],
    ["nothing", {}],
  ],
  reads: ["demo://resource/static/document/features.md", text, "nothing://here"],
  prompts: [
    ["simple-prompt", {}],
    ["args-prompt", { city: "Paris", state: "Texas" }],
    ["completable-prompt", { department: "Engineering", name: "Alice" }],
    ["resource-prompt", { resourceType: "Text", resourceId: "1" }],
    ["args-prompt", {}],
    ["nothing", {}],
  ],
  completions: [
    { ref: { type: "ref/prompt", name: "completable-prompt" }, argument: { name: "department", value: "E" } },
    {
      ref: { type: "ref/prompt", name: "completable-prompt" },
      argument: { name: "name", value: "" },
      context: { arguments: { department: "Sales" } },
    },
    {
      ref: { type: "ref/resource", uri: "demo://resource/dynamic/text/{resourceId}" },
      argument: { name: "resourceId", value: "1" },
    },
  ],
  watched: { uri: text, call: ["toggle-subscriber-updates", {}] },
};

const program = path.resolve("node_modules/@modelcontextprotocol/server-everything/dist");
const everythingCommand = { command: process.execPath, args: [path.join(program, "index.js"), "stdio"] };
const everythingUrl = async () => ({ url: await serveExample(path.join(program, "transports/streamableHttp.js")) });

/** What is made anew each time: times, ids, and how a session is called. */
const masked = (portrait: Portrait): unknown =>
  JSON.parse(
    JSON.stringify(essence(portrait))
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
      .replaceAll(/\d{1,2}:\d\d:\d\d [AP]M/g, "<time>")
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<id>"),
  );

const servers = [
  ["server-everything, 2025", "stdio", () => everythingCommand, everything],
  ["server-everything, 2025", "HTTP", everythingUrl, everything],
  ["a server of the SDK v1, 2025", "stdio", () => sdkCommand("2025"), sdk],
  ["a server of the SDK v1, 2025", "HTTP", () => sdkUrl("2025"), sdk],
  ["a server of the SDK v2, 2026", "stdio", () => sdkCommand("2026"), sdk],
  ["a server of the SDK v2, 2026", "HTTP", () => sdkUrl("2026"), sdk],
] as const;

describe.each(casesOf(servers, 0, 1, 4))("8: %s over %s", (name, way, open, sitter) => {
  const shared = shareAmongTests(async () => {
    const upstream: UpstreamConfig = await open();
    const options = { revision: name.endsWith("2026") ? "2026-07-28" : "2025-11-25", capabilities: asker };
    const direct = await (upstream.url === undefined
      ? connectCommand(upstream, options)
      : connectUrl(upstream.url, options));
    return { gateway: await wrapHere(upstream), direct: masked(await portray(direct, sitter)) };
  });

  test.each(["2025-11-25", "2026-07-28"])("8: is the same to a client of %s as it is directly", async (revision) => {
    const { gateway, direct } = await shared();
    const client = await gateway.connect(way === "stdio" ? way : "http", { revision, capabilities: asker });
    if (way === "HTTP" && revision < "2026-07-28") await client.openStream();
    expect(masked(await portray(client, sitter))).toEqual(direct);
  });
});
