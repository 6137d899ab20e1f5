import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { opendir, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Completer } from "../../src/command/command.ts";
import { complete, completeWithDescriptions } from "../../src/completion/complete.ts";
import { completePath, completeTaskId } from "../../src/completion/completers.ts";
import { CompletionFailed } from "../../src/completion/completion-failed.ts";
import { Cancelled } from "../../src/errors.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";

const schema = {
  type: "object",
  properties: {
    city: { type: "string" },
    country: { enum: ["de", "fr"] },
    tags: { type: "array", items: { type: "string" } },
  },
};
const withCity = (city: Completer) => ({ completers: { city } });

describe("a command's own completer", () => {
  test("sees what was typed, the other arguments, the context resolved, and a signal", async () => {
    const seen: unknown[] = [];
    const completer: Completer = (partial, given) => {
      seen.push(partial, given.arguments, given.context, given.signal.aborted);
      return ["Berlin", "Bonn"];
    };
    const request = { argument: "city", partial: "Be", arguments: { country: "de" }, context: { where: "$.country" } };
    expect(await complete(schema, request, withCity(completer))).toEqual({
      values: ["Berlin"],
      total: 1,
      hasMore: false,
    });
    expect(seen).toEqual(["Be", { country: "de" }, { where: "de" }, false]);
  });

  test("may be asynchronous, may describe, and is filtered, counted and cut like any other", async () => {
    const completer: Completer = async () =>
      Array.from({ length: 250 }, (_, index) => ({ value: `city-${index}`, description: `number ${index}` }));
    const { suggestions, total, hasMore } = await completeWithDescriptions(
      schema,
      { argument: "city", partial: "CITY" },
      withCity(completer),
    );
    expect([suggestions.length, total, hasMore]).toEqual([100, 250, true]);
    expect(suggestions[7]).toEqual({ value: "city-7", description: "number 7" });
  });

  test("serves the items of a list, and an argument the schema does not know", async () => {
    const options = { completers: { tags: () => ["a", "b"], "options.format": () => ["x"] } };
    expect((await complete(schema, { argument: "tags[3]" }, options)).values).toEqual(["a", "b"]);
    expect((await complete(schema, { argument: "options.format" }, options)).values).toEqual(["x"]);
    expect((await complete(schema, { argument: "country" }, options)).values).toEqual(["de", "fr"]);
    await expect(complete(schema, { argument: "constructor" }, options)).rejects.toMatchObject({ fault: "argument" });
  });

  const failing: [string, Completer, string][] = [
    ["throws", () => { throw new Error("the database is down"); }, "the database is down"], // biome-ignore format: a table
    ["rejects", () => Promise.reject(new Error("no route")), "no route"],
    [
      "gives no list",
      (() => undefined) as unknown as Completer,
      "its completer must give a list of texts, or of { value, description }.",
    ],
    [
      "gives something else than texts",
      (() => [1]) as unknown as Completer,
      "its completer must give a list of texts, or of { value, description }.",
    ],
  ];
  test.each(failing)("that %s is a failure with its reason, never an empty list", async (_title, completer, reason) => {
    const failed = await complete(schema, { argument: "city" }, withCity(completer)).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(CompletionFailed);
    expect(failed).toMatchObject({ code: "completion_failed", fault: "completer", argument: "city", reason });
    expect((failed as Error).message).toBe(`Completing \`city\` failed: ${reason}`);
  });

  test("that takes too long is stopped and said so", async () => {
    const clock = new FakeClock();
    let reason: unknown;
    const completer: Completer = (_partial, { signal }) =>
      new Promise(() => {
        signal.addEventListener("abort", () => {
          reason = signal.reason;
        });
      });
    const answer = complete(schema, { argument: "city" }, { ...withCity(completer), clock, limitMs: 100 });
    clock.advance(100);
    await expect(answer).rejects.toMatchObject({
      fault: "timeout",
      argument: "city",
      reason: "its completer took longer than 100 ms.",
    });
    expect(reason).toBeInstanceOf(CompletionFailed);
  });

  test("ends with the caller: the reason is the caller's", async () => {
    const controller = new AbortController();
    const answer = complete(
      schema,
      { argument: "city" },
      { ...withCity(() => new Promise(() => {})), signal: controller.signal },
    );
    controller.abort(new Cancelled());
    await expect(answer).rejects.toBeInstanceOf(Cancelled);
    await expect(complete(schema, {}, { signal: controller.signal })).rejects.toBeInstanceOf(Cancelled);
  });

  test("leaves no timer and no listener behind", async () => {
    const clock = new FakeClock();
    const controller = new AbortController();
    await complete(schema, { argument: "city" }, { ...withCity(() => []), clock, signal: controller.signal });
    expect(clock.pendingTimers).toBe(0);
  });
});

describe("paths", () => {
  let base = "";
  beforeAll(() => {
    base = mkdtempSync(path.join(tmpdir(), "meanwhile-"));
    for (const folder of ["notes/2026", ".git", "empty"]) mkdirSync(path.join(base, folder), { recursive: true });
    for (const file of ["notes/todo.md", "notes/2026/may.md", "notebook.txt", ".hidden", "readme.md"])
      writeFileSync(path.join(base, file), "");
    symlinkSync("/nowhere", path.join(base, "broken"));
  });
  afterAll(() => rmSync(base, { recursive: true, force: true }));
  const readFolder = (folder: string) => readdir(folder, { withFileTypes: true });
  const pathsOf = async (partial: string, options: Partial<Parameters<typeof completePath>[0]> = {}) =>
    (await complete(schema, { argument: "city", partial }, withCity(completePath({ readFolder, base, ...options }))))
      .values;

  test("folder by folder, sorted, hidden ones only when asked for", async () => {
    expect(await pathsOf("")).toEqual(["broken", "empty/", "notebook.txt", "notes/", "readme.md"]);
    expect(await pathsOf("note")).toEqual(["notebook.txt", "notes/"]);
    expect(await pathsOf("notes/")).toEqual(["notes/2026/", "notes/todo.md"]);
    expect(await pathsOf("notes/2026/m")).toEqual(["notes/2026/may.md"]);
    expect(await pathsOf(".")).toEqual([".git/", ".hidden"]);
    expect(await pathsOf("./no")).toEqual(["./notebook.txt", "./notes/"]);
    expect(await pathsOf("empty/")).toEqual([]);
  });

  test("folders alone, or some files", async () => {
    expect(await pathsOf("", { only: "folders" })).toEqual(["empty/", "notes/"]);
    expect(await pathsOf("", { accept: (name) => name.endsWith(".md") })).toEqual(["empty/", "notes/", "readme.md"]);
  });

  test("opendir will do, and is read no further than needed", async () => {
    expect(await pathsOf("note", { readFolder: opendir })).toEqual(["notebook.txt", "notes/"]);
    let read = 0;
    async function* endless() {
      for (;;) yield { name: `file-${++read}`, isDirectory: () => false };
    }
    expect(await pathsOf("", { readFolder: endless })).toHaveLength(100);
    expect(read).toBe(10_000);
  });

  test.each(["/", "/etc/", "../", "notes/../../", "..", "C:\\", "\\\\host\\", "notes/..\\..\\/", "a\0/"])(
    "%j leads out, and lists nothing",
    async (partial) => {
      expect((await pathsOf(partial)).filter((found) => found !== "")).toEqual([]);
    },
  );

  test("out of the folder for the person whose machine it is", async () => {
    expect(await pathsOf(`${base}/no`, { anywhere: true })).toEqual([`${base}/notebook.txt`, `${base}/notes/`]);
    expect(await pathsOf("notes/../re", { anywhere: true })).toEqual(["notes/../readme.md"]);
  });

  test("what is not there holds nothing; what cannot be read is a failure", async () => {
    expect(await pathsOf("nowhere/x")).toEqual([]);
    expect(await pathsOf("readme.md/x")).toEqual([]);
    const refuse = () => Promise.reject(Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" }));
    await expect(pathsOf("", { readFolder: refuse })).rejects.toMatchObject({
      fault: "completer",
      reason: "EACCES: permission denied",
    });
  });
});

test("task ids come with their status", async () => {
  const tasks = [
    { taskId: "task_b7", status: "working", statusMessage: "Reading page 3" },
    { taskId: "task_a1", status: "completed" },
  ];
  const completer = completeTaskId((partial, signal) =>
    signal.aborted ? [] : tasks.filter(({ taskId }) => taskId.startsWith(partial)),
  );
  expect(
    (await completeWithDescriptions(schema, { argument: "city", partial: "task_" }, withCity(completer))).suggestions,
  ).toEqual([
    { value: "task_b7", description: "working: Reading page 3" },
    { value: "task_a1", description: "completed" },
  ]);
});
