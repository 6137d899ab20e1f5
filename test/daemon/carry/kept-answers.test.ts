import { chmodSync, chownSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { answersFile, readAnswers, writeAnswers } from "../../../src/daemon/carry/kept-answers.ts";
import { homeAt } from "../../../src/paths.ts";
import { temporaryFolder } from "../../helpers/home.ts";

const whose = { key: "k", version: "1.0.0" };
const text = JSON.stringify({ tools: [{ name: "one" }] });
const isRoot = process.getuid?.() === 0;

/** A home in which a daemon has left one list behind. */
function openLeft() {
  const home = homeAt({ MEANWHILE_HOME: path.join(temporaryFolder(), "home") });
  writeAnswers(home, whose, { old: { "tools/list": text, ping: "{}" }, new: { "tools/list": text } });
  return { home, file: answersFile(home, "k") };
}

test("what was left behind is found by revision and method", () => {
  const { home, file } = openLeft();
  const find = readAnswers(home, whose);
  expect([find?.("old", "tools/list"), find?.("new", "tools/list"), find?.("old", "ping")]).toEqual([text, text, "{}"]);
  for (const [revision, method] of [
    ["old", "tools/call"],
    ["none", "ping"],
    ["new", "ping"],
    ["old", "constructor"],
    ["__proto__", "toString"],
  ] as const)
    expect(find?.(revision, method), `${revision} ${method}`).toBeUndefined();
  // Equal texts are kept once.
  expect(readFileSync(file, "utf8").split(text)).toHaveLength(2);
});

test("what another version, or a daemon of another key, left behind is not used", () => {
  const { home } = openLeft();
  expect(readAnswers(home, { ...whose, version: "1.0.1" })).toBeUndefined();
  renameSync(answersFile(home, "k"), answersFile(home, "other"));
  expect(readAnswers(home, { ...whose, key: "other" })).toBeUndefined();
});

test.for(["", "{}", "null", '{"key":"k","version":"1.0.0"}', '{"key":"k","version":"1.0.0","lines":null}', "\0\0\0"])(
  "a file that holds %j is none",
  (held) => {
    const { home, file } = openLeft();
    writeFileSync(file, held);
    expect(readAnswers(home, whose)).toBeUndefined();
  },
);

test("an answer that was cut off is none", () => {
  const { home, file } = openLeft();
  writeFileSync(file, readFileSync(file, "utf8").replace(text, text.slice(0, -1)));
  expect(readAnswers(home, whose)?.("old", "tools/list")).toBeUndefined();
  expect(readAnswers(home, whose)?.("old", "ping")).toBe("{}");
});

test("a file that others may read or write, or a link, is not trusted", () => {
  const { home, file } = openLeft();
  for (const mode of [0o620, 0o602, 0o644]) {
    chmodSync(file, mode);
    expect(readAnswers(home, whose), mode.toString(8)).toBeUndefined();
  }
  chmodSync(file, 0o600);
  expect(readAnswers(home, whose)).toBeDefined();
  renameSync(file, `${file}.aside`);
  symlinkSync(`${file}.aside`, file);
  expect(readAnswers(home, whose)).toBeUndefined();
});

test.runIf(isRoot)("another user's file is not trusted", () => {
  const { home, file } = openLeft();
  chownSync(file, 12_345, 12_345);
  expect(readAnswers(home, whose)).toBeUndefined();
});

test("what is too long is neither left behind nor read", () => {
  const { home, file } = openLeft();
  const long = JSON.stringify({ tools: ["x".repeat(3 * 1024 * 1024)] });
  writeFileSync(file, `${readFileSync(file, "utf8")}\n${long}`);
  expect(readAnswers(home, whose)).toBeUndefined();
  writeAnswers(home, whose, { old: { "tools/list": long } });
  expect(readdirSync(home.runFolder)).toEqual([]);
});

test("of many projects, those that were served last are remembered", () => {
  const { home } = openLeft();
  for (let number = 0; number < 30; number++)
    writeAnswers(home, { ...whose, key: `k${number}` }, { old: { ping: "{}" } });
  const names = readdirSync(home.runFolder);
  expect(names).toHaveLength(20);
  expect(names).toContain("k29.answers");
});
