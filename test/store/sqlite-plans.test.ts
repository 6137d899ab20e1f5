import path from "node:path";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { openStore } from "../../src/store/open.ts";
import { statements } from "../../src/store/sqlite/statements.ts";
import { temporaryFolder } from "../helpers/home.ts";

/** Those that look at everything: after a clock was set, and the durations of all commands. */
const lookAtAll = ["prolong", "shorten", "durations"];
/** Of live tasks, and of what may go, some are put in order; there are few of either. */
const mayOrder = ["claim", "liveCommands", "sweep", "prune", "forgetFirst"];

function plansOf(file: string): Map<string, string[]> {
  const db = new Database(file, { readonly: true });
  const plans = Object.entries(statements)
    .filter(([, text]) => !text.startsWith("pragma"))
    .map(([name, text]): [string, string[]] => {
      const values = Object.fromEntries([...text.matchAll(/:(\w+)/g)].map(([, value]) => [value, null]));
      const steps = db.prepare(`explain query plan ${text}`).all(values) as { detail: string }[];
      return [name, steps.map(({ detail }) => detail)];
    });
  db.close();
  return new Map(plans);
}

test("however many tasks have ended, no statement of daily work reads them all", async () => {
  const file = path.join(temporaryFolder(), "tasks.db");
  await (await openStore(file)).close();
  const plans = plansOf(file);
  expect(plans.size).toBeGreaterThan(30);
  const all = /^SCAN (tasks|inputs|outcomes|steps|durations)\b(?!.* tasks_(unfinished|live)\b)/;
  for (const [name, steps] of plans) {
    if (lookAtAll.includes(name)) continue;
    expect(
      steps.filter((step) => all.test(step)),
      name,
    ).toEqual([]);
    if (!mayOrder.includes(name)) expect(steps.join("\n"), name).not.toContain("TEMP B-TREE");
  }
});

test("a page is merged from indexes in its own order", async () => {
  const file = path.join(temporaryFolder(), "tasks.db");
  await (await openStore(file)).close();
  const list = plansOf(file).get("list")?.join("\n");
  expect(list?.match(/tasks_ended \(caller=\? AND status=\? AND number<\?\)/g)).toHaveLength(3);
  expect(list).toContain("tasks_unfinished (caller=? AND number<?)");
  expect(list).toContain("MERGE (UNION ALL)");
});

test("no limit is a bare parameter: SQLite would compile the statement anew each time it is bound", () => {
  for (const [name, text] of Object.entries(statements)) expect(text, name).not.toMatch(/limit :/);
});
