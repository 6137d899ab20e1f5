import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { createId } from "../../src/ids.ts";
import { openTraces, startTask } from "../helpers/place.ts";
import { accept, shareServers } from "../helpers/rules.ts";

const shared = shareServers();
const root = path.resolve(import.meta.dirname, "../..");
const unknownTask = { error: { code: -32602 }, result: undefined };

test("T1: twenty thousand task ids: none repeats, no beginning is shared, at least 122 random bits, made by node:crypto", async () => {
  const count = 20_000;
  const hexes = Array.from({ length: count }, () => createId().replaceAll("-", ""));
  expect(new Set(hexes).size).toBe(count);
  // Made from the time, 48 bits of it would be shared by all that were made in the same millisecond.
  expect(new Set(hexes.map((hex) => hex.slice(0, 12))).size).toBe(count);
  expect(new Set(hexes.map((hex) => hex.slice(-12))).size).toBe(count);

  const bytes = Buffer.from(hexes.join(""), "hex");
  const bit = (row: number, at: number) => ((bytes[row * 16 + (at >> 3)] as number) >> (7 - (at & 7))) & 1;
  const sixSigma = 6 * (Math.sqrt(count) / 2);
  const isEven = (counts: (row: number) => boolean) => {
    let yes = 0;
    for (let row = 0; row < count; row++) if (counts(row)) yes++;
    return Math.abs(yes - count / 2) < sixSigma;
  };
  const random = Array.from({ length: 128 }, (_, at) => at).filter((at) => isEven((row) => bit(row, at) === 1));
  expect(random.length).toBeGreaterThanOrEqual(122);
  // And they are that many: no bit follows from its neighbour, or from the id before.
  for (const [index, at] of random.entries()) {
    const next = random[index + 1] ?? 0;
    expect(
      isEven((row) => bit(row, at) !== bit(row, next)),
      `bit ${at} and its neighbour`,
    ).toBe(true);
    expect(
      isEven((row) => row > 0 && bit(row, at) !== bit(row - 1, at)),
      `bit ${at} of one id and the next`,
    ).toBe(true);
  }

  const sources = readdirSync(path.join(root, "src"), { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && !file.startsWith("testing"),
  );
  const textOf = (file: string) => readFileSync(path.join(root, "src", file), "utf8");
  expect(textOf("ids.ts")).toMatch(/^import \{ randomBytes, randomInt, randomUUID \} from "node:crypto";$/m);
  expect(
    sources.filter((file) => /\bMath\.random\b|\brandomUUID\b|from "(?:nanoid|uuid|ulid)"/.test(textOf(file))),
  ).toEqual(["ids.ts"]);
  const makers = sources.flatMap((file) =>
    [...textOf(file).matchAll(/\btaskId: (create\w+\(\)|`|")/g)].map((match) => `${file}: ${match[1]}`),
  );
  expect(new Set(makers)).toEqual(new Set(["task/engine.ts: createId()", "task/held-call.ts: createId()"]));

  // What clients get is such an id, as it was made.
  const { core, modern } = await shared.both();
  for (const client of [core, modern]) {
    const { taskId } = await startTask(client, "work_nap", { ms: 1 });
    expect(taskId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
});

test("T9: an id that is unknown, malformed or no string is -32602 from every tasks method", async () => {
  const { core, modern } = await shared.both();
  const { taskId } = await startTask(modern, "work_long", { file: openTraces().file });
  const texts = [
    randomUUID(),
    taskId.toUpperCase(),
    taskId.slice(0, -1),
    `${taskId} `,
    `${taskId}\u0000`,
    "",
    " ",
    "%",
    "'; drop table tasks; --",
    "../tasks.db",
    "__proto__",
    "constructor",
    "💥",
    "x".repeat(10_000),
  ];
  const others: unknown[] = [undefined, null, 0, 1, true, {}, [taskId], { taskId }, { toString: taskId }];
  const pipes = { core: await shared.core(), modern: await shared.modern() };
  for (const wrong of [...texts, ...others]) {
    const params = wrong === undefined ? {} : { taskId: wrong };
    const what = `${JSON.stringify(wrong)?.slice(0, 50)}`;
    for (const method of ["tasks/get", "tasks/result", "tasks/cancel"]) {
      expect(await pipes.core.request(method, params), `${method} ${what}`).toMatchObject(unknownTask);
      expect(await core.request(method, params), `${method} ${what}`).toMatchObject({ status: 200, ...unknownTask });
    }
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
      const more = method === "tasks/update" ? { inputResponses: { q1: accept("x") } } : {};
      expect(await pipes.modern.request(method, { ...params, ...more }), `${method} ${what}`).toMatchObject(
        unknownTask,
      );
      if (typeof wrong !== "string" || !/^[!-~]+$/.test(wrong)) continue;
      expect(await modern.request(method, { ...params, ...more }), `${method} ${what}`).toMatchObject(unknownTask);
    }
  }
  expect((await modern.request("tasks/get", { taskId })).result).toMatchObject({ status: "working" });
});
