import { inspect } from "node:util";
import type pg from "pg";
import { expect, vi } from "vitest";
import { openLog } from "../../src/log.ts";
import { openStore } from "../../src/store/open.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { Bench } from "../store-suite/cases/bench.ts";
import { cleanUp } from "./home.ts";

/** A store on a schema, closed after the test. */
export async function openAt(url: string, clock?: FakeClock): Promise<Bench> {
  const store = await openStore(url, clock && { clock });
  const bench = new Bench(store, clock ?? new FakeClock());
  cleanUp(() => inTime(bench, store.close()));
  return bench;
}

/** What a promise comes to, while time passes quickly. */
export async function inTime<T>({ clock }: { readonly clock: FakeClock }, promise: Promise<T>): Promise<T> {
  let isOver = false;
  const ended = promise.finally(() => (isOver = true));
  ended.catch(() => undefined);
  await vi.waitFor(
    () => {
      clock.advance(600);
      expect(isOver).toBe(true);
    },
    { timeout: 30_000, interval: 5 },
  );
  return await ended;
}

/** What opening it says; whatever is told of it holds no password. */
export async function refusal(url: string): Promise<{ code: string; message: string }> {
  const lines: string[] = [];
  const log = openLog({ level: "debug", isTerminal: false, write: (line) => lines.push(line) });
  const error = await openStore(url, { log }).then(
    (store) => store.close().then(() => undefined),
    (thrown: unknown) => thrown as { code: string; message: string; forClients?: string },
  );
  expect(error, "it was opened").toBeDefined();
  expect(error?.forClients).toMatch(/^[A-Z].*\.$/);
  expect(error?.forClients).not.toContain("127.0.0.1");
  for (const told of [inspect(error, { depth: 9, showHidden: true }), lines.join("")])
    expect(told).not.toContain("secret");
  return error as { code: string; message: string };
}

/** What an operator is told, and nothing else. */
export const unusable = (why: string) => ({
  code: "STORE_UNAVAILABLE",
  message: expect.stringMatching(
    new RegExp(`^The task database (127\\.0\\.0\\.1|localhost):\\d+/\\w+ cannot be used: ${why}`),
  ),
});

/** What lies in a schema. */
export async function relationsIn(client: pg.Client, schema: string): Promise<string[]> {
  const { rows } = await client.query<{ relname: string }>(
    "select relname from pg_class where relnamespace = $1::regnamespace",
    [schema],
  );
  return rows.map(({ relname }) => relname);
}
