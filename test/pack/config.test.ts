import { lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { readUserFile, replaceUserFile, withValue } from "../../commands/config/_user-file.ts";
import set from "../../commands/config/set.ts";
import { loadSettings } from "../../src/settings/settings.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { run } from "../helpers/run.ts";

const configIn = (home: string) => JSON.parse(readFileSync(path.join(home, "config.json"), "utf8")) as unknown;

describe("config set", () => {
  test("writes a setting by its dotted name, and says what was there before", async () => {
    const home = temporaryFolder();
    expect(await run(set, { key: "http.port", value: "8080" }, { home })).toMatchObject({
      data: { key: "http.port", old_value: null, new_value: 8080, config_path: path.join(home, "config.json") },
    });
    expect(await run(set, { key: "http.port", value: "9090" }, { home })).toMatchObject({
      data: { old_value: 8080, new_value: 9090 },
    });
    expect(configIn(home)).toEqual({ http: { port: 9090 } });
    expect(statSync(path.join(home, "config.json")).mode & 0o777).toBe(0o600);
    expect(await run(set, { key: "http.port", value: "null" }, { home })).toMatchObject({
      data: { old_value: 9090, new_value: null },
    });
    expect([configIn(home), readdirSync(home)]).toEqual([{}, ["config.json"]]);
  });

  test.each([
    ["http.prt", "1", "`http.prt` is not a setting; did you mean `http.port`?"],
    ["http.port", "banana", "`http.port` must be a whole number from 0 to 65535"],
    [
      "bundled",
      '["monitr"]',
      "`bundled` must be true, false, or a list of domains of the bundled commands (config, database,",
    ],
    ["nmae", "x", "`nmae` is not a setting; did you mean `name`?"],
    ["toolPrefix", "a b", "`toolPrefix` must be letters, digits and _"],
    ["mcp", "{}", "`mcp` must be a function"],
    ["__proto__.x", "1", "is not a setting"],
  ])("refuses %s %s as the program itself would, and changes nothing", async (key, value, sentence) => {
    const home = temporaryFolder();
    writeFileSync(path.join(home, "config.json"), '{ "name": "mine" }');
    const outcome = await run(set, { key, value }, { home });
    expect(outcome).toMatchObject({ ending: "failed", message: expect.stringContaining(sentence) });
    expect(outcome).toMatchObject({ message: expect.stringContaining(path.join(home, "config.json")) });
    expect(readFileSync(path.join(home, "config.json"), "utf8")).toBe('{ "name": "mine" }');
  });

  test.each([
    ["", "1", "`key` is empty"],
    ["http..port", "1", "has an empty part"],
    ["name", "", "`value` is empty"],
  ])("refuses key %j with value %j before anything else", async (key, value, sentence) => {
    expect(await run(set, { key, value }, { home: temporaryFolder() })).toMatchObject({
      ending: "failed",
      message: expect.stringContaining(sentence),
    });
  });

  test.each([
    ["name", '{"pack":1}', "`name` must be"],
    ["toolPrefix", "a b", "`toolPrefix` must be letters, digits and _"],
    ["deferral.atuo", "true", "`deferral.atuo` is not a setting"],
    ["name", "", "`value` is empty"],
  ])("through MCP nobody is asked about %s %s, which it can never take", async (key, value, sentence) => {
    const asked: string[] = [];
    const ask = async ({ message }: { message: string }) => {
      asked.push(message);
      return { action: "accept", content: { confirm: true } } as const;
    };
    const throughMcp = { home: temporaryFolder(), origin: { door: "mcp", folder: undefined }, door: { ask } } as const;
    expect(await run(set, { key, value }, throughMcp)).toMatchObject({
      ending: "failed",
      message: expect.stringContaining(sentence),
    });
    expect(asked).toEqual([]);
    expect(await run(set, { key: "name", value: "mine" }, throughMcp)).toMatchObject({ ending: "completed" });
    expect(asked).toEqual(["Change the setting name to mine?"]);
  });

  test.each([
    ["http.port", "config set http.port …"],
    ["http.port;reboot", "config set http …"],
  ])("through MCP %s is refused with what to type instead, and that is never more than a name", async (key, typed) => {
    const outcome = await run(
      set,
      { key, value: "1" },
      { home: temporaryFolder(), origin: { door: "mcp", folder: undefined } },
    );
    expect(outcome).toMatchObject({ ending: "failed", message: expect.stringMatching(new RegExp(`${typed}$`)) });
  });

  test("does not touch a file that it cannot understand", async () => {
    const home = temporaryFolder();
    writeFileSync(path.join(home, "config.json"), "{ name: }");
    expect(await run(set, { key: "name", value: "x" }, { home })).toMatchObject({
      message: expect.stringContaining("correct it by hand first"),
    });
    expect(readFileSync(path.join(home, "config.json"), "utf8")).toBe("{ name: }");
  });

  test("writes what a link leads to, and keeps the link", async () => {
    const home = temporaryFolder();
    mkdirSync(path.join(home, "dotfiles"));
    writeFileSync(path.join(home, "dotfiles/meanwhile.json"), "{}", { mode: 0o644 });
    symlinkSync("dotfiles/meanwhile.json", path.join(home, "config.json"));
    await run(set, { key: "name", value: "mine" }, { home });
    expect(lstatSync(path.join(home, "config.json")).isSymbolicLink()).toBe(true);
    expect(configIn(path.join(home))).toEqual({ name: "mine" });
    expect(statSync(path.join(home, "dotfiles/meanwhile.json")).mode & 0o777).toBe(0o644);
  });

  test("does not overwrite what somebody else wrote in the meantime", () => {
    const home = temporaryFolder();
    const before = readUserFile(home);
    writeFileSync(path.join(home, "config.json"), '{ "name": "theirs" }');
    expect(replaceUserFile(before, { name: "mine" })).toBe(false);
    expect([configIn(home), readdirSync(home)]).toEqual([{ name: "theirs" }, ["config.json"]]);
  });

  test("that takes the bundled commands away, itself among them, says how to undo it", async () => {
    const home = temporaryFolder();
    const warnings = async (value: string) =>
      (await run(set, { key: "bundled", value }, { home })).messages.filter(({ type }) => type === "warning");
    expect((await warnings("false")).map(({ text }) => text)).toEqual([
      `The bundled commands are gone from the next start on, config set among them; to have them back, take "bundled" out of ${path.join(home, "config.json")}.`,
    ]);
    expect([await warnings("true"), await warnings("null")]).toEqual([[], []]);
  });

  test("is in force the next time the settings are loaded", async () => {
    const home = temporaryFolder();
    expect(await run(set, { key: "toolPrefix", value: "wksm" }, { home })).toMatchObject({
      messages: [{ type: "success", text: 'toolPrefix is now "wksm"' }],
    });
    const settings = await loadSettings({ cwd: temporaryFolder(), env: { MEANWHILE_HOME: home }, flags: {} });
    expect(settings.toolPrefix).toBe("wksm");
  });
});

test("a value at a dotted path leaves the rest as it is", () => {
  expect(withValue({ a: { b: 1, c: 2 }, d: 3 }, ["a", "b"], 9)).toEqual({ a: { b: 9, c: 2 }, d: 3 });
  expect(withValue({ a: { b: 1 }, d: 3 }, ["a", "b"], null)).toEqual({ d: 3 });
  expect(withValue({ a: "text" }, ["a", "b"], 1)).toEqual({ a: { b: 1 } });
  expect(withValue({}, ["a", "b"], null)).toEqual({});
});
