import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { anonymous, userCaller } from "../../src/command/caller.ts";
import { defineCommand } from "../../src/command/command.ts";
import { content } from "../../src/command/content.ts";
import type { Answer, ProgressReport, Question } from "../../src/command/context.ts";
import { toEnvelope } from "../../src/command/envelope.ts";
import { summaryLine } from "../../src/command/outcome.ts";
import { runCommand } from "../../src/command/run.ts";
import { jsonSchema } from "../../src/command/schema.ts";
import { Cancelled, CommandError, ShuttingDown } from "../../src/errors.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { foreign } from "../helpers/foreign.ts";
import { run } from "../helpers/run.ts";

const double = defineCommand({
  summary: "Double a number",
  input: z.object({ value: z.number(), times: z.number().default(2) }),
  output: z.object({ result: z.number() }),
  run: ({ value, times }) => ({ result: value * times }),
});

describe("a run", () => {
  test("gives the output, parsed, with the input's defaults filled in", async () => {
    expect(await run(double, { value: 21 })).toMatchObject({
      ending: "completed",
      data: { result: 42 },
      json: '{"result":42}',
    });
  });

  test("names every wrong argument and starts nothing", async () => {
    let started = false;
    const command = defineCommand({
      summary: "x",
      input: z.object({ a: z.string(), b: z.number() }),
      run: () => (started = true),
    });
    const outcome = await run(command, { b: "two" });
    expect(outcome).toMatchObject({ ending: "failed", cause: "input" });
    expect(outcome).toHaveProperty(
      "message",
      "Invalid arguments for test: `a` is required; `b`: Invalid input: expected number, received string.",
    );
    expect(started).toBe(false);
  });

  test("warns of an argument it does not know, with the one that was meant", async () => {
    const outcome = await run(double, { value: 1, tiems: 3 });
    expect(outcome).toMatchObject({ ending: "completed", data: { result: 2 } });
    expect(outcome.messages[0]).toMatchObject({
      type: "warning",
      text: "Unknown argument `tiems`; did you mean `times`? It was ignored.",
    });
  });

  test("turns whatever run() throws into a failure with its sentence", async () => {
    const failing = (error: unknown) =>
      defineCommand({
        summary: "x",
        run() {
          throw error;
        },
      });
    expect(await run(failing(new Error("disk full")))).toMatchObject({
      ending: "failed",
      cause: "command",
      message: "disk full",
    });
    expect(await run(failing("just text"))).toMatchObject({ message: "just text" });
    expect(await run(failing({ code: 7 }))).toMatchObject({ message: 'Threw {"code":7} instead of an Error.' });
    expect(await run(failing(new CommandError("no", { details: { field: "a" } })))).toHaveProperty(
      "messages.0.details",
      { field: "a" },
    );
  });

  test("keeps the details of a CommandError that another copy of this package has thrown", async () => {
    const copy = (await import(`${"../../src/errors.ts"}?copy`)) as { readonly CommandError: typeof CommandError };
    expect(copy.CommandError).not.toBe(CommandError);
    const error = new copy.CommandError("no", { details: { field: "a" } });
    const { messages } = await run(defineCommand({ summary: "x", run: () => Promise.reject(error) }));
    expect(messages).toMatchObject([{ type: "error", text: "no", details: { field: "a" } }]);
  });

  test.each([anonymous, userCaller({ issuer: "https://issuer.example", subject: "s" })])(
    "names the causes of an error, and no file, to a caller who is $kind",
    async (caller) => {
      const failing = (error: unknown) => defineCommand({ summary: "x", run: () => Promise.reject(error) });
      const details = async (error: unknown) => (await run(failing(error), {}, { caller })).messages[0]?.details;
      const round: Error & { cause?: unknown } = new Error("round");
      round.cause = new Error("and", { cause: round });
      expect(await details(new Error("boom", { cause: new TypeError("why") }))).toBe(
        "Error: boom\ncaused by TypeError: why",
      );
      expect(await details(round)).toBe("Error: round\ncaused by Error: and");
      expect(await details(new Error("boom", { cause: "a word" }))).toBe("Error: boom\ncaused by a word");
      expect(await details(new Error("boom"))).toBeUndefined();
    },
  );

  describe("whose fetch fails carries the cause", () => {
    const fetching = (url: string) => defineCommand({ summary: "x", run: async () => await fetch(url) });

    test("and the line of the command", async () => {
      const server = createServer().listen(0, "127.0.0.1");
      await once(server, "listening");
      const { port } = server.address() as AddressInfo;
      server.close();
      const message = `fetch failed: connect ECONNREFUSED 127.0.0.1:${port}`;
      const outcome = await run(fetching(`http://127.0.0.1:${port}/`));
      expect(outcome).toMatchObject({ ending: "failed", message, at: { file: import.meta.filename } });
      expect(outcome.messages).toMatchObject([{ type: "error", text: message }]);
    });

    test("of every address that was tried", async () => {
      const refused = (address: string) => new Error(`connect ECONNREFUSED ${address}`);
      const cause = new AggregateError([refused("::1:9"), refused("127.0.0.1:9")], "");
      const failing = defineCommand({
        summary: "x",
        run: () => Promise.reject(new TypeError("fetch failed", { cause })),
      });
      expect(await run(failing)).toMatchObject({
        message: "fetch failed: connect ECONNREFUSED ::1:9, connect ECONNREFUSED 127.0.0.1:9",
      });
    });

    test("which is not added to a message of the author's own", async () => {
      const error = new Error("The report cannot be fetched", { cause: new Error("connect ECONNREFUSED") });
      const failing = defineCommand({ summary: "x", run: () => Promise.reject(error) });
      expect(await run(failing)).toMatchObject({ message: "The report cannot be fetched" });
    });
  });

  test("shows stacks in its messages only when debugging", async () => {
    const command = defineCommand({ summary: "x", run: () => Promise.reject(new Error("boom")) });
    expect((await run(command)).messages[0]).toHaveProperty(
      "details",
      expect.stringMatching(/^Error: boom\nat test\/command\/run\.test\.ts:\d+:\d+$/),
    );
    expect((await run(command, {}, { isDebug: true })).messages[0]).toHaveProperty(
      "details.stack",
      expect.stringContaining("run.test.ts"),
    );
  });

  test("fails when the output breaks the command's own promise", async () => {
    const command = defineCommand({
      summary: "x",
      output: z.object({ pages: z.number() }),
      run: () => ({ pages: "many" }) as never,
    });
    expect(await run(command)).toMatchObject({
      ending: "failed",
      cause: "output",
      message:
        "test returned something that does not fit its own output schema: `pages`: Invalid input: expected number, received string",
    });
  });

  test.each([
    [
      "a cycle",
      () => ((circle: Record<string, unknown>) => (circle.self = circle))({}),
      "not JSON: Converting circular structure",
    ],
    ["a bigint", () => ({ size: 1n }), "not JSON: Do not know how to serialize a BigInt"],
    ["a function", () => () => 1, "returned a function, which is not JSON"],
    ["100,000 levels", () => nested(100_000), "nested too deeply"],
    ["more than 10 MiB", () => "x".repeat(10 * 1024 * 1024), "more than 10 MiB; write it to a file"],
  ])("refuses a result that cannot be sent: %s", async (_name, make, sentence) => {
    const outcome = await run(defineCommand({ summary: "x", run: () => make() }));
    expect(outcome).toMatchObject({ ending: "failed", message: expect.stringContaining(sentence) });
  });

  test("details that are not JSON are described, and fail nothing", async () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    const command = defineCommand({
      summary: "x",
      run(_input, task) {
        task.log.warn("size", { bytes: 1n });
        throw new CommandError("no", { details: circle });
      },
    });
    const outcome = await run(command);
    expect(outcome).toMatchObject({ ending: "failed", message: "no" });
    expect(() => JSON.stringify([outcome.messages, outcome.log])).not.toThrow();
  });

  test("the last message is the ending's own, however much was said before, and there is one ending", async () => {
    const command = defineCommand({
      summary: "x",
      run(_input, task) {
        for (let n = 0; n < 2_000; n++) task.log.warn(`warning ${n}`);
        throw new Error("the real reason");
      },
    });
    const { messages } = await run(command);
    expect(messages.at(-1)).toMatchObject({ type: "error", text: "the real reason" });
    expect(messages.filter(({ text }) => text === "the real reason")).toHaveLength(1);
  });

  test("a summary is the result's last message, and what a terminal shows; without one it says how long it took", async () => {
    const summed = defineCommand({
      summary: "x",
      output: z.object({ n: z.number() }),
      summarize: ({ n }) => `${n} counted`,
      run: () => ({ n: 4 }),
    });
    const outcome = await run(summed);
    expect(outcome.messages).toMatchObject([{ type: "success", text: "4 counted" }]);
    expect(summaryLine(outcome, "count")).toBe("4 counted");
    const silent = await run(double, { value: 1 });
    expect(silent.messages).toMatchObject([
      { type: "success", text: expect.stringMatching(/^\S+ finished in \d+ ms$/) },
    ]);
    expect(summaryLine(silent, "double")).toBe(silent.messages[0]?.text);
    for (const summarize of [() => "", () => 4 as never]) {
      const odd = await run(defineCommand({ summary: "x", summarize, run: () => ({}) }));
      expect(odd.messages.map(({ type, text }) => [type, / finished in /.test(text)])).toEqual([["success", true]]);
    }
    expect((await run(defineCommand({ summary: "x", run: () => content("said") }))).messages).toEqual([]);
  });

  test("data that is a no is the result all the same, and its summary a warning", async () => {
    const check = (broken: number) =>
      defineCommand({
        summary: "x",
        output: z.object({ broken: z.number() }),
        summarize: ({ broken }) => `${broken} broken`,
        saysNo: ({ broken }) => broken > 0,
        run: () => ({ broken }),
      });
    const outcome = await run(check(2));
    expect(outcome).toMatchObject({
      ending: "completed",
      data: { broken: 2 },
      saidNo: true,
      messages: [{ type: "warning", text: "2 broken" }],
    });
    expect(toEnvelope(outcome, false)).toMatchObject({ success: true, data: { broken: 2 } });
    expect(summaryLine(outcome, "check")).toBe("2 broken");
    expect(await run(check(0))).not.toHaveProperty("saidNo");
  });

  test("a summary that fails does not fail work that is done", async () => {
    const command = defineCommand({
      summary: "x",
      output: z.object({ n: z.number() }),
      summarize() {
        throw new Error("no words");
      },
      run: () => ({ n: 1 }),
    });
    expect(await run(command)).toMatchObject({ ending: "completed", data: { n: 1 } });
  });

  test.each([
    ["a block of no kind", { type: "nope" }, "block 1 of no known type"],
    ["null", null, "block 1 of no known type"],
    ["an image without data", { type: "image", mimeType: "image/png" }, "block 1, of type image, without `data`"],
    ["12 MiB", { type: "text", text: "x".repeat(12 * 1024 * 1024) }, "more than 10 MiB"],
  ])("refuses content with %s", async (_name, block, sentence) => {
    const outcome = await run(defineCommand({ summary: "x", run: () => content(block as never) }));
    expect(outcome).toMatchObject({ ending: "failed", message: expect.stringContaining(sentence) });
  });

  test("a step gives the same value fresh and remembered, and the same name in a loop is another step", async () => {
    const kept = new Map<string, string>();
    const steps = {
      get: (name: string) => kept.get(name),
      keep: async (name: string, json: string) => void kept.set(name, json),
      all: () => [...kept],
    };
    const command = defineCommand({
      summary: "x",
      async run(_input, task) {
        const pages: number[] = [];
        for (let page = 0; page < 3; page++) pages.push(await task.step("page", () => page));
        return { pages, when: await task.step("when", () => new Date(0)) };
      },
    });
    const first = await run(command, {}, { steps });
    expect(first).toMatchObject({ data: { pages: [0, 1, 2], when: "1970-01-01T00:00:00.000Z" } });
    expect(await run(command, {}, { steps })).toMatchObject({ data: (first as { data: object }).data });
    expect(await run(command)).toMatchObject({ data: (first as { data: object }).data });
  });

  test("carries content blocks as they are", async () => {
    const command = defineCommand({
      summary: "x",
      run: () => content("one", { type: "image", data: "AA==", mimeType: "image/png" }),
    });
    expect(await run(command)).toMatchObject({
      ending: "completed",
      content: [{ type: "text", text: "one" }, { type: "image" }],
    });
  });

  test("tells its door what it announces, reports and logs, in order, and nothing after its end", async () => {
    const seen: unknown[] = [];
    let late: () => void = () => {};
    const command = defineCommand({
      summary: "x",
      run(_input, task) {
        task.announce("Starting");
        task.progress({ percentage: 50, message: "half" });
        task.progress("just words");
        task.log.warn("careful", { at: 1 });
        late = () => task.progress({ percentage: 99 });
        return { done: true };
      },
    });
    const door = {
      announce: (text: string) => seen.push(text),
      progress: (report: ProgressReport) => seen.push(report),
      log: (line: { text: string }) => seen.push(line.text),
    };
    const outcome = await run(command, {}, { door });
    late();
    expect(seen).toEqual(["Starting", { percentage: 50, message: "half" }, { message: "just words" }, "careful"]);
    expect(outcome.messages.map(({ type, text }) => [type, text])).toEqual([
      ["status", "Starting"],
      ["warning", "careful"],
      ["success", expect.stringMatching(/^test finished in \d+ ms$/)],
    ]);
    expect(outcome.log).toMatchObject([{ level: "warn", text: "careful", details: { at: 1 } }]);
  });
});

describe("stopping a run", () => {
  const waits = defineCommand({
    summary: "x",
    run: (_input, task) =>
      new Promise((_, reject) => task.signal.addEventListener("abort", () => reject(new Error("I was told to stop")))),
  });

  test("the signal's reason decides the ending, not what the command throws", async () => {
    for (const [reason, ending] of [
      [new Cancelled(), { ending: "cancelled" }],
      [new ShuttingDown(), { ending: "failed", cause: "shutdown" }],
      ["a text from a client", { ending: "cancelled" }],
    ] as const) {
      const stop = new AbortController();
      const outcome = run(waits, {}, { signals: [stop.signal] });
      stop.abort(reason);
      expect(await outcome).toMatchObject(ending);
    }
  });

  test("a run that was cancelled before it began never begins", async () => {
    let started = false;
    const command = defineCommand({ summary: "x", run: () => (started = true) });
    expect(await run(command, {}, { signals: [AbortSignal.abort(new Cancelled())] })).toMatchObject({
      ending: "cancelled",
    });
    expect(started).toBe(false);
  });

  test("a command that never ends is let go two seconds after it was told to stop", async () => {
    const clock = new FakeClock();
    const stop = new AbortController();
    const outcome = run(
      defineCommand({ summary: "x", run: () => new Promise(() => {}) }),
      {},
      { clock, signals: [stop.signal] },
    );
    await new Promise(setImmediate);
    stop.abort(new Cancelled());
    clock.advance(2_000);
    expect(await outcome).toMatchObject({
      ending: "cancelled",
      message: "Cancelled by the caller. It has not stopped by itself yet.",
    });
    expect(clock.pendingTimers).toBe(0);
  });

  test("a deadline fails the run as timed out", async () => {
    const clock = new FakeClock();
    const command = defineCommand({ summary: "x", timeout: 5, run: waits.run as never });
    const outcome = run(command, {}, { clock });
    await new Promise(setImmediate);
    clock.advance(5_000);
    expect(await outcome).toMatchObject({ ending: "failed", cause: "timeout", message: "Timed out after 5 s." });
  });

  test.each(["own", "foreign"])("a deadline stands still while a question is open (%s)", async (whose) => {
    const clock = new FakeClock();
    const asked = [Promise.withResolvers<Answer>(), Promise.withResolvers<Answer>()];
    const questions = asked.values();
    const yes: Answer = { action: "accept", content: { action: "accept", content: {} } };
    const forever = (signal: AbortSignal) =>
      new Promise<never>((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const command =
      whose === "own"
        ? defineCommand({
            summary: "x",
            timeout: 5,
            async run(_input, { ask, signal }) {
              await Promise.all([ask("One?", z.object({})), ask("Two?", z.object({}))]);
              return await forever(signal);
            },
          })
        : foreign(
            async (_input, { ask, signal }) => {
              const request = { method: "elicitation/create", params: { message: "?", requestedSchema: {} } };
              await Promise.all([ask(request), ask(request)]);
              return await forever(signal);
            },
            {},
            { timeout: 5 },
          );
    const ask = () => questions.next().value?.promise ?? Promise.reject(new Error("one question too many"));
    const origin = { door: "mcp" as const, folder: undefined, client: { capabilities: { elicitation: {} } } };
    let isOver = false;
    const outcome = Promise.resolve(run(command, {}, { clock, origin, door: { ask } })).finally(() => (isOver = true));
    await new Promise(setImmediate);
    for (const { resolve } of asked) {
      clock.advance(3_600_000);
      await new Promise(setImmediate);
      expect(isOver, "a person has all the time").toBe(false);
      resolve(yes);
      await new Promise(setImmediate);
    }
    clock.advance(4_999);
    await new Promise(setImmediate);
    expect(isOver, "what it has left is its own").toBe(false);
    clock.advance(1);
    expect(await outcome).toMatchObject({ ending: "failed", cause: "timeout", message: "Timed out after 5 s." });
    expect(clock.pendingTimers).toBe(0);
  });

  test.each(["own", "foreign"])(
    "a result waits for room, and the timeout does not end that wait (%s)",
    async (whose) => {
      const clock = new FakeClock();
      const granted = Promise.withResolvers<void>();
      let hasRoom = false;
      const room = () => (hasRoom ? undefined : granted.promise.then(() => (hasRoom = true)));
      const command =
        whose === "own"
          ? defineCommand({ summary: "x", timeout: 5, run: () => ({ done: true }) })
          : foreign(async () => ({ content: [] }), {}, { timeout: 5 });
      let isOver = false;
      const outcome = Promise.resolve(run(command, {}, { clock, door: { room } })).finally(() => (isOver = true));
      await new Promise(setImmediate);
      clock.advance(60_000);
      await new Promise(setImmediate);
      expect(isOver).toBe(false);
      granted.resolve();
      expect(await outcome).toMatchObject({ ending: "completed", durationMs: 0 });
      expect(clock.pendingTimers).toBe(0);
    },
  );

  test("a result that comes after the stop is not a result", async () => {
    const stop = new AbortController();
    const ready = Promise.withResolvers<void>();
    const command = defineCommand({
      summary: "x",
      async run() {
        await ready.promise;
        return { late: true };
      },
    });
    const outcome = run(command, {}, { signals: [stop.signal] });
    stop.abort(new Cancelled());
    ready.resolve();
    expect(await outcome).toMatchObject({ ending: "cancelled" });
  });
});

describe("asking", () => {
  const publish = defineCommand({
    summary: "x",
    run: async (_input, task) =>
      await task.ask("Publish it?", z.object({ publish: z.boolean(), note: z.string().optional() })),
  });

  test("gives the answer, parsed", async () => {
    const questions: Question[] = [];
    const door = {
      async ask(question: Question) {
        questions.push(question);
        return { action: "accept" as const, content: { publish: true } };
      },
    };
    expect(await run(publish, {}, { door })).toMatchObject({ ending: "completed", data: { publish: true } });
    expect(questions[0]).toMatchObject({
      message: "Publish it?",
      isConfirmation: false,
      schema: { type: "object", required: ["publish"] },
    });
  });

  test("a declined or dismissed question ends the run with its sentence", async () => {
    for (const action of ["decline", "cancel"] as const) {
      expect(await run(publish, {}, { door: { ask: () => Promise.resolve({ action }) } })).toMatchObject({
        ending: "failed",
        message: "The question «Publish it?» was declined, so nothing more was done.",
      });
    }
  });

  test("an answer that does not fit is asked for again, three times in all, with the field and the reason", async () => {
    const asked: string[] = [];
    const door = {
      async ask({ message }: Question) {
        asked.push(message);
        return { action: "accept" as const, content: { publish: asked.length === 2 ? true : "yes" } };
      },
    };
    expect(await run(publish, {}, { door })).toMatchObject({ ending: "completed", data: { publish: true } });
    expect(asked).toEqual([
      "Publish it?",
      "Publish it? (The last answer did not fit: `publish`: Invalid input: expected boolean, received string.)",
    ]);
    const outcome = await run(
      publish,
      {},
      { door: { ask: () => Promise.resolve({ action: "accept", content: { publish: "yes" } }) } },
    );
    expect(outcome).toHaveProperty(
      "message",
      "The answer to «Publish it?» does not fit: `publish`: Invalid input: expected boolean, received string",
    );
  });

  test("where nobody can be asked, the sentence says what to do instead", async () => {
    const outcome = await run(
      publish,
      {},
      { door: { whyNoAnswer: "this client cannot show questions; run it in a terminal" } },
    );
    expect(outcome).toHaveProperty(
      "message",
      "test asks «Publish it?», and this client cannot show questions; run it in a terminal.",
    );
  });

  test("questions are flat: a nested field is refused by name", async () => {
    const command = defineCommand({
      summary: "x",
      run: (_input, task) => task.ask("Where?", z.object({ place: z.object({ city: z.string() }) })),
    });
    const outcome = await run(command, {}, { door: { ask: () => Promise.reject(new Error("must not be asked")) } });
    expect(outcome).toHaveProperty(
      "message",
      "ask() takes a flat object of texts, numbers, booleans and enums; `place` is something else.",
    );
  });

  test("commands that destroy ask first, and run only after a yes", async () => {
    let runs = 0;
    const command = defineCommand({ summary: "x", effects: "destroy", run: () => void runs++ });
    const answering = (confirm: boolean) => ({
      async ask(question: Question) {
        expect(question.isConfirmation).toBe(true);
        return { action: "accept" as const, content: { confirm } };
      },
    });
    expect(await run(command, {}, { door: answering(false) })).toMatchObject({
      ending: "failed",
      message: expect.stringContaining("was declined"),
    });
    expect(runs).toBe(0);
    expect(await run(command, {}, { door: answering(true) })).toMatchObject({ ending: "completed" });
    expect(runs).toBe(1);
  });
});

test("foreign JSON Schema checks input, fills defaults in and names the field", async () => {
  const input = jsonSchema<{ page: number; size: number }>({
    type: "object",
    properties: {
      page: { type: "integer", minimum: 1 },
      size: { type: "integer", default: 10 },
      kind: { enum: ["a", "b"] },
    },
    required: ["page"],
    additionalProperties: false,
  });
  const command = defineCommand({ summary: "x", input, run: (value) => value });
  expect(await run(command, { page: 2 })).toMatchObject({ ending: "completed", data: { page: 2, size: 10 } });
  expect(await run(command, {})).toHaveProperty("message", "Invalid argument for test: `page` is required.");
  expect(await run(command, { page: 0, kind: "c", extra: 1 })).toHaveProperty(
    "message",
    'Invalid arguments for test: `extra`: is not a known argument; `page`: must be >= 1; `kind`: must be one of "a", "b".',
  );
});

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = [value];
  return value;
}

describe("without a turn of the event loop", () => {
  const facts = { name: "test", clock: new FakeClock(), home: "/", config: {}, door: {} };

  test("a command that answers at once has ended when it returns, whatever it came to", () => {
    expect(runCommand(double, { value: 21 }, facts)).toMatchObject({ ending: "completed", json: '{"result":42}' });
    expect(runCommand(double, { value: "x" }, facts)).toMatchObject({ ending: "failed", cause: "input" });
    const failing = defineCommand({
      summary: "x",
      run() {
        throw new Error("disk full");
      },
    });
    expect(runCommand(failing, {}, facts)).toMatchObject({ ending: "failed", message: "disk full" });
    expect(runCommand(defineCommand({ summary: "x", run: () => content("said") }), {}, facts)).toMatchObject({
      ending: "completed",
      json: "{}",
    });
  });

  test("what can be awaited is awaited, whoever made it", async () => {
    const command = defineCommand({
      summary: "x",
      // biome-ignore lint/suspicious/noThenProperty: this is what it is about.
      run: () => ({ then: (resolve: (data: object) => void) => resolve({ late: true }) }) as never,
    });
    const running = runCommand(command, {}, facts);
    expect(running).toBeInstanceOf(Promise);
    expect(await running).toMatchObject({ ending: "completed", data: { late: true } });
  });
});
