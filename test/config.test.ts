import path from "node:path";
import { describe, expect, test } from "vitest";
import { loadSettings } from "../src/config.ts";
import { temporaryFolder, writeFiles } from "./helpers/home.ts";

const load = (files: Record<string, string> = {}, options: { env?: Record<string, string>; flags?: object; home?: Record<string, string> } = {}) => {
  const cwd = writeFiles(temporaryFolder(), files);
  return loadSettings({ cwd, env: { MEANWHILE_HOME: writeFiles(temporaryFolder(), options.home ?? {}), ...options.env }, flags: options.flags ?? {} });
};

describe("settings", () => {
  test("have a default each, with no file and no variable set", async () => {
    expect(await load()).toMatchObject({
      name: "meanwhile",
      configFile: undefined,
      toolPrefix: "",
      http: { port: 7337, host: "127.0.0.1" },
      requireToken: false,
      logLevel: "info",
      isDebug: false,
    });
  });

  test("flags win over environment, environment over project, project over user", async () => {
    const home = { "config.json": '{ "name": "user", "http": { "port": 1, "host": "localhost" }, "logLevel": "warn" }' };
    const project = { "meanwhile.config.json": '{ "http": { "port": 2 } }' };
    expect(await load({}, { home })).toMatchObject({ name: "user", http: { port: 1, host: "localhost" }, logLevel: "warn" });
    expect(await load(project, { home })).toMatchObject({ name: "user", http: { port: 2, host: "localhost" } });
    expect(await load(project, { home, env: { MEANWHILE_PORT: "3", MEANWHILE_LOG: "error" } })).toMatchObject({ http: { port: 3 }, logLevel: "error" });
    expect(await load(project, { home, env: { MEANWHILE_PORT: "3" }, flags: { port: 4 } })).toMatchObject({ http: { port: 4 } });
  });

  test("a TypeScript file is loaded as it is, folders relative to it", async () => {
    const settings = await load({
      "meanwhile.config.ts":
        'import { defineConfig } from "meanwhile";\nexport default defineConfig({ commands: ["tools"], bundled: false, mcp() {} } satisfies object);',
    });
    expect(settings.commandFolders).toEqual([path.join(path.dirname(settings.configFile as string), "tools")]);
    expect(settings.mcp).toBeTypeOf("function");
  });

  test.each([
    ['{ "nmae": "x" }', "`nmae` is not a setting; did you mean `name`?"],
    ['{ "http": { "port": 70000 } }', "`http` must be { port, host }"],
    ['{ "toolPrefix": "a b" }', "`toolPrefix` must be letters, digits and _"],
    ['{ "logLevel": "loud" }', "`logLevel` must be one of debug, info, warn, error"],
    ["[]", "must hold one object"],
    ["{", "Cannot read"],
  ])("%s is refused by name", async (text, sentence) => {
    await expect(load({ "meanwhile.config.json": text })).rejects.toThrow(
      expect.objectContaining({ code: "CONFIG_INVALID", message: expect.stringContaining(sentence) }),
    );
  });

  test("a config file that throws says which file and why", async () => {
    await expect(load({ "meanwhile.config.ts": 'throw new Error("no secrets here");' })).rejects.toThrow(
      /Cannot load .*meanwhile\.config\.ts: no secrets here/,
    );
  });

  test.each([
    [{ env: { MEANWHILE_PORT: "x" } }, 'MEANWHILE_PORT must be a whole number from 0 to 65535, not "x".'],
    [{ env: { MEANWHILE_LOG: "loud" } }, 'MEANWHILE_LOG must be one of debug, info, warn, error, not "loud".'],
    [{ flags: { commands: ["nowhere"] } }, "--commands: there is no folder"],
  ])("%j is refused by name", async (options, sentence) => {
    await expect(load({}, options)).rejects.toThrow(sentence);
  });
});
