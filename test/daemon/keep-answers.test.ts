import { existsSync } from "node:fs";
import type { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { answersFile, readAnswers } from "../../src/daemon/carry/kept-answers.ts";
import { AnswerKeeper } from "../../src/daemon/keep-answers.ts";
import { silentLog } from "../../src/log.ts";
import { homeAt } from "../../src/paths.ts";
import { revisions } from "../../src/wire/revisions.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";

const whose = { key: "k", version: "1.0.0" };

/** A keeper of a daemon that answers every request with what `resultOf` says, and hangs up where it says nothing. */
function openKeeper(resultOf: (method: string) => object | undefined) {
  const home = homeAt({ MEANWHILE_HOME: temporaryFolder() });
  const told: string[] = [];
  const serve = async (input: PassThrough, output: PassThrough) => {
    for await (const chunk of input) {
      const { id, method } = JSON.parse(String(chunk)) as { id: number; method: string };
      const answer = resultOf(method);
      if (answer === undefined) return;
      output.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\n`);
    }
  };
  const log = { ...silentLog, debug: (text: string) => void told.push(text) };
  return { home, told, keeper: new AnswerKeeper({ home, whose, serve, clock: systemClock, log }) };
}

test("every revision's answers are left behind, but for what is refused or goes on in a next page", async () => {
  const pages: Record<string, object> = {
    "prompts/list": { error: { code: -32601, message: "Method not found" } },
    "resources/list": { result: { resources: [], nextCursor: "2" } },
  };
  const { home, keeper } = openKeeper((method) => pages[method] ?? { result: { of: method } });
  keeper.keep();
  const find = await waitFor(() => readAnswers(home, whose));
  for (const revision of revisions) {
    expect(find(revision, "tools/list"), revision).toBe('{"of":"tools/list"}');
    for (const method of Object.keys(pages)) expect(find(revision, method), `${revision} ${method}`).toBeUndefined();
  }
});

test("what changes while it is written down is written down next", async () => {
  let asked = 0;
  const { home, keeper } = openKeeper((method) => {
    if (method === "tools/list" && ++asked === 3) keeper.keep();
    return { result: { isOld: asked < 3 } };
  });
  keeper.keep();
  const find = await waitFor(() => readAnswers(home, whose));
  for (const revision of revisions) expect(find(revision, "tools/list"), revision).toBe('{"isOld":false}');
});

test("a daemon that ends before it has answered all leaves nothing behind", async () => {
  const { home, told, keeper } = openKeeper((method) => (method === "server/discover" ? undefined : { result: {} }));
  keeper.keep();
  await waitFor(() => told.length > 0);
  expect(existsSync(answersFile(home, "k"))).toBe(false);
});
