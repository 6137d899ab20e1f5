import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

/**
 * An author's program has Meanwhile inside and its own name outside: what people and models read, and which variables
 * count, goes by `thisProgram`. Nobody else writes the name down, but for these.
 */
const exceptions: Readonly<Record<string, string>> = {
  "src/cli/init/project-files.ts": "what is made depends on Meanwhile, and is run by it",
  "src/command/load.ts": "a Node that is too old is met before anybody could say which program this is",
  "src/diagnose/asking/hosts/predict.ts": "a report says of a server that it is one of Meanwhile's kind",
  "src/diagnose/asking/hosts/remedy.ts": "what is recommended is Meanwhile, whoever recommends it",
  "src/diagnose/formats/html-report.ts": "a report says which checks made it, and whose they are",
  "src/diagnose/formats/json-report.ts": "a report says which checks made it, and whose they are",
  "src/diagnose/formats/markdown-report.ts": "a report says which checks made it, and whose they are",
  "src/diagnose/formats/report-schema.ts": "a report's format has one name",
  "src/diagnose/formats/sarif-report.ts": "code scanning tells results apart by the name of the tool",
  "src/diagnose/report/compare-reports.ts": "a report says which checks made it, and whose they are",
  "src/diagnose/suites/hosts/slow-call.ts": "a report says of a server that it is one of Meanwhile's kind",
  "src/diagnose/suites/tasks/restart.ts": "what is recommended is Meanwhile, whoever recommends it",
  "src/system/child-environment.ts": "the mark of a run is between processes, those of other programs too",
};

const root = path.resolve(import.meta.dirname, "../..");
const sources = globSync("src/**/*.ts", { cwd: root }).filter((file) => file !== "src/program/program.ts");
const codeOf = (file: string) =>
  readFileSync(path.join(root, file), "utf8").replaceAll(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, "");

const verbs = [...codeOf("src/cli/verb-list.ts").matchAll(/^ {2}(\w+): \{/gm)].map(([, word]) => word);
const named = new RegExp(
  `\\bmeanwhile (?:${verbs.join("|")}|wrap|_\\w+|-|<|…|\\$\\{)|MEANWHILE_|\\bMeanwhile\\b|[^\\w)?]\\.meanwhile\\b`,
);

test("no sentence says `meanwhile <verb>`, MEANWHILE_… or Meanwhile by itself", () => {
  expect(verbs).toEqual(expect.arrayContaining(["serve", "tasks", "completion"]));
  expect(sources.length).toBeGreaterThan(500);
  expect(sources.filter((file) => named.test(codeOf(file))).sort()).toEqual(Object.keys(exceptions).sort());
});

test("a sentence is told from a name on the wire", () => {
  const sentences = [
    "run it in a terminal: meanwhile tasks answer 1",
    "set MEANWHILE_HOME to a folder of your own",
    "put it back, or restart Meanwhile.",
    'path.join(homedir(), ".meanwhile")',
  ];
  expect(sentences.filter((text) => !named.test(text))).toEqual([]);
  const others = ['"meanwhile/call"', 'import "meanwhile"', "reply.meanwhile", "what happens meanwhile is lost"];
  expect(others.filter((text) => named.test(text))).toEqual([]);
});
