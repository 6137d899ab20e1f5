import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { severities, suiteNames } from "../../src/diagnose/check.ts";
import { checks } from "../../src/diagnose/suites/index.ts";

const root = path.resolve(import.meta.dirname, "../..");
const { withChecks } = (await import(path.join(root, "scripts/diagnose-docs.mjs"))) as {
  readonly withChecks: (text: string) => string;
};

test("docs/diagnose.md lists every check as it is (else: node scripts/diagnose-docs.mjs)", () => {
  const text = readFileSync(path.join(root, "docs/diagnose.md"), "utf8");
  expect(text).toBe(withChecks(text));
  for (const { id } of checks) expect(text).toContain(`\`${id}\``);
});

test("every check has an id of its own, a question, a reason, a remedy and a source", () => {
  expect(checks.length).toBeGreaterThan(50);
  expect(new Set(checks.map(({ id }) => id)).size).toBe(checks.length);
  for (const { id, question, severity, why, remedy, source } of checks) {
    expect(id).toMatch(/^[a-z]+\/[a-z0-9-]+$/);
    expect(suiteNames).toContain(id.split("/")[0]);
    expect(severities).toContain(severity);
    expect(question, id).toMatch(/^[A-Z].*\?$/);
    for (const text of [why, remedy]) expect(text, id).toMatch(/^[A-Z`].{20,}\.$/s);
    expect(source.length, id).toBeGreaterThan(5);
  }
});

test("a suite's folder holds its checks, each in the file that its id names, and nothing else but their list", () => {
  const files = globSync("*/*.ts", { cwd: path.join(root, "src/diagnose/suites") });
  const named = files.map((file) => file.replace(/\.ts$/, "")).filter((file) => !file.endsWith("/index"));
  expect(named.toSorted()).toEqual(checks.map(({ id }) => id).toSorted());
});

test("the list of checks says every severity that a finding may have", () => {
  const text = withChecks("<!-- checks: written by scripts/diagnose-docs.mjs -->");
  expect(text).toContain("`hosts/slow-call` (major or minor)");
  expect(text).toContain("`tasks/capability` (blocker, major or minor)");
  // What it shares with others of its suite counts too.
  expect(text).toContain("`security/hidden-text` (major or minor)");
  expect(text).toContain("`protocol/ping` (major)");
});
