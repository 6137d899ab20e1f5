import net from "node:net";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { sampleArguments } from "../../../src/diagnose/asking/sample-arguments.ts";
import { security } from "../../../src/diagnose/suites/security/index.ts";
import { parseJson } from "../../../src/diagnose/wire/bounded-json.ts";
import { type HttpAnswer, sendHttp } from "../../../src/diagnose/wire/probe-http.ts";
import { Pipe } from "../../../src/diagnose/wire/server-pipe.ts";
import { startHostile } from "../../fixtures/diagnose/hostile.mjs";
import { piped, reached, surveyed } from "../../helpers/diagnose.ts";
import { askAll, findingsIn } from "../../helpers/suite.ts";

let hostile: Awaited<ReturnType<typeof startHostile>>;
let listener: net.Server;
let strangers = 0;

beforeAll(async () => {
  listener = net.createServer((socket) => socket.destroy()).on("connection", () => strangers++);
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  hostile = await startHostile({ elsewhere: `http://127.0.0.1:${(listener.address() as net.AddressInfo).port}/` });
});
afterAll(async () => {
  await hostile.close();
  listener.close();
});

const policy = { allowsPrivate: false, allowsLoopback: true };
const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
const exchange = (name: string, timeoutMs = 50_000): Promise<HttpAnswer> =>
  sendHttp(
    new URL(`${hostile.origin}/${name}`),
    { body, headers: { authorization: "Bearer of-this-origin-only" }, timeoutMs },
    policy,
  );

describe("an exchange over HTTP ends, whatever comes", () => {
  test.each(["endless-events", "endless-body", "many-tools", "long-error"])(
    "%s: after a few megabytes",
    async (name) => {
      const answer = await exchange(name);
      expect(answer).toMatchObject({ status: 200, ended: "too-large", messages: [] });
      expect(answer.bytes).toBeLessThan(5 * 1024 * 1024);
      expect(answer.text.length).toBeLessThanOrEqual(64 * 1024);
    },
  );

  test.each(["slow-head", "slow-body"])("%s: when its time is over, though bytes keep coming", async (name) => {
    expect(await exchange(name, 400)).toMatchObject({ ended: "timeout", messages: [] });
  });

  test.each(["gzip", "deflate", "br"])("%s: what is packed stays packed", async (name) => {
    const answer = await exchange(name);
    expect(answer).toMatchObject({ ended: "whole", messages: [] });
    expect(answer.bytes).toBeLessThan(4 * 1024 * 1024);
  });

  test("a hundred thousand levels are not taken for an answer", async () => {
    expect(await exchange("deep")).toMatchObject({ ended: "whole", messages: [], values: 0 });
  });

  test.each(["redirect-302", "redirect-307", "redirect-308"])(
    "%s: a redirect is told and not followed",
    async (name) => {
      const connect = vi.spyOn(net.Socket.prototype, "connect");
      onTestFinished(() => connect.mockRestore());
      const answer = await exchange(name);
      expect(answer.status).toBe(Number(name.slice(-3)));
      expect(answer.headers.location).toMatch(/169\.254\.169\.254|127\.0\.0\.1/);
      expect(connect).toHaveBeenCalledTimes(1);
      expect(strangers).toBe(0);
    },
  );
});

describe("a server is met, whatever it says", () => {
  const meet = (name: string) => surveyed(reached(`${hostile.origin}/${name}`));

  test("pages without end are read up to a limit", async () => {
    const { tools, toolsProblem, prompts } = await meet("many-pages");
    expect({ tools: tools.length, toolsProblem, prompts }).toEqual({
      tools: 150,
      toolsProblem: "there are more than 50 pages",
      prompts: undefined,
    });
  });

  test("pages that weigh too much in memory are not collected", async () => {
    const { tools, toolsProblem } = await meet("heavy-pages");
    expect(toolsProblem).toBe("the pages are larger than anybody reads");
    expect(tools.length).toBeLessThan(5);
    expect(JSON.stringify(tools).length).toBeLessThan(10_000);
  });

  test("an answer that is packed is called so", async () => {
    expect((await meet("gzip")).problem).toBe("the answer is packed (gzip), which nobody asked for");
  });

  test("five thousand questions of its own get few answers", async () => {
    const connect = vi.spyOn(net.Socket.prototype, "connect");
    onTestFinished(() => connect.mockRestore());
    expect((await meet("endless-requests")).tools).toEqual([]);
    expect(connect.mock.calls.length).toBeLessThan(100);
  });

  test("keys of the prototype are names like any others", async () => {
    const { tools } = await meet("prototype");
    expect(tools.map(({ name }) => name)).toEqual(["__proto__", "constructor", "toString", "__proto__"]);
    await askAll(security, reached(`${hostile.origin}/prototype`), { facts: await meet("prototype") });
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test.each(["escapes", "prototype"])("%s: a revision that it makes up decides nothing", async (name) => {
    const { legacy, modern } = await meet(name);
    expect([legacy?.revision, modern?.revision]).toEqual(["2025-11-25", "2026-07-28"]);
  });

  test("what it says about where to sign in is told and not followed", async () => {
    const facts = await meet("sign-in");
    expect(facts.isLocked).toBe(true);
    const asked = security.filter(({ isForLocked }) => isForLocked === true);
    for (const [name, title] of [
      ["sign-in", "The sign-in metadata lies on another address without TLS"],
      ["sign-in-elsewhere", "The sign-in metadata lies on another address without TLS"],
    ] as const)
      expect(
        findingsIn(
          await askAll(asked, reached(`${hostile.origin}/${name}`, { authorization: "Bearer of-this-origin-only" }), {
            facts,
          }),
        ),
      ).toEqual([{ id: "security/sign-in-hint", severity: "major", title }]);
    expect(strangers).toBe(0);
  });
});

describe("a server that is started cannot overrun who reads it", () => {
  const events = { onStart() {}, onEnd() {} };
  const start = async (...words: string[]) => {
    const target = piped("hostile.mjs", ...words);
    const pipe = await Pipe.start(target as never, events);
    onTestFinished(async () => void (await pipe.close()));
    return pipe;
  };

  test.each([
    ["stdout-flood", "It printed more than 10000 lines."],
    ["endless-line", "It printed a line of more than 4 MiB without an end."],
    ["heavy-lines", "It printed more than 300000 values."],
    ["stderr-flood", "It printed more than 8 MiB to its standard error."],
  ])("%s", async (name, flood) => {
    const pipe = await start(name);
    await pipe.ended;
    expect(pipe.flood).toBe(flood);
    expect(pipe.lines.length).toBeLessThanOrEqual(10_000);
    expect(pipe.stderr.length).toBeLessThanOrEqual(64 * 1024);
  });

  test("answers to questions that nobody asked are not taken for others", async () => {
    const facts = await surveyed(piped("hostile.mjs", "wrong-ids"));
    expect(facts).toMatchObject({ modern: { revision: "2026-07-28" }, legacy: { revision: "2025-11-25" }, tools: [] });
  });

  test("one that leaves at once is told so", async () => {
    expect((await surveyed(piped("hostile.mjs", "exits-at-once"))).problem).toBe("the server left without an answer");
  });
});

describe("what is read is weighed first", () => {
  test("too many values are no message, however short each is", () => {
    expect(parseJson(`[${"0,".repeat(150_000)}0]`)).toHaveLength(150_001);
    expect(parseJson(`[${"0,".repeat(250_000)}0]`)).toBeUndefined();
    expect(parseJson("[".repeat(100_000) + "]".repeat(100_000))).toBeUndefined();
  });

  test("a schema that asks for gigabytes, or the same a million times over, gets nothing", () => {
    expect(sampleArguments({ properties: { a: { type: "string", minLength: 1e9 } }, required: ["a"] })).toBeUndefined();
    expect(sampleArguments({ properties: { a: { type: "array", minItems: 1e9 } }, required: ["a"] })).toBeUndefined();
    const nested = (depth: number): object =>
      depth === 0
        ? { type: "boolean" }
        : { type: "object", properties: { a: nested(depth - 1) }, required: Array.from({ length: 1_000 }).fill("a") };
    expect(sampleArguments(nested(4) as never)).toEqual({ a: { a: { a: { a: false } } } });
    expect(
      sampleArguments(JSON.parse('{"properties":{"__proto__":{"type":"boolean"}},"required":["__proto__"]}')),
    ).toEqual(JSON.parse('{"__proto__":false}'));
  });
});
