import { readdirSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { defaultLimits, limitsOf } from "../../commands/_pack/limits.ts";
import { UsageError } from "../../src/errors.ts";
import { programVersion } from "../../src/project/project.ts";
import { checkConfig } from "../../src/settings/check-config.ts";
import { publicSettings } from "../../src/settings/public-settings.ts";
import { loadSettings, readSettings } from "../../src/settings/settings.ts";
import { defaultDeferral } from "../../src/task/deferral.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

const load = (
  files: Record<string, string> = {},
  options: { env?: Record<string, string>; flags?: object; home?: Record<string, string> } = {},
) => {
  const cwd = writeFiles(temporaryFolder(), files);
  return loadSettings({
    cwd,
    env: { MEANWHILE_HOME: writeFiles(temporaryFolder(), options.home ?? {}), ...options.env },
    flags: options.flags ?? {},
  });
};

describe("settings", () => {
  test("have a default each, with no file and no variable set", async () => {
    expect(await load()).toMatchObject({
      name: "meanwhile",
      configFile: undefined,
      toolPrefix: "",
      http: { port: 7337, host: "127.0.0.1", allowAnonymous: false, publicUrl: undefined, allowedOrigins: [] },
      auth: { issuers: [] },
      logLevel: "info",
      isDebug: false,
      pack: { roots: [], ...defaultLimits },
    });
    // Commands that are embedded without settings keep to the same.
    expect(limitsOf({})).toEqual(limitsOf(publicSettings(await load())));
  });

  test("what a document may take is bounded by settings that are held to their ranges", async () => {
    const home = { "config.json": '{ "pack": { "memoryMb": 512, "textMb": 8 } }' };
    const settings = await load({ "meanwhile.config.json": '{ "pack": { "textMb": 4 } }' }, { home });
    expect(settings.pack).toEqual({ roots: [], ...defaultLimits, memoryMb: 512, textMb: 4 });
    for (const [name, value] of [
      ["memoryMb", 64],
      ["documentSeconds", 0],
      ["documentParts", 1.5],
      ["unpackedMb", 0],
      ["textMb", "8"],
    ] as const)
      await expect(
        load({ "meanwhile.config.json": JSON.stringify({ pack: { [name]: value } }) }),
        name,
      ).rejects.toThrow(`\`pack.${name}\` must be `);
  });

  test("flags win over environment, environment over project, project over user", async () => {
    const home = {
      "config.json": '{ "name": "user", "http": { "port": 1, "host": "localhost" }, "logLevel": "warn" }',
    };
    const project = { "meanwhile.config.json": '{ "http": { "port": 2 } }' };
    expect(await load({}, { home })).toMatchObject({
      name: "user",
      http: { port: 1, host: "localhost" },
      logLevel: "warn",
    });
    expect(await load(project, { home })).toMatchObject({ name: "user", http: { port: 2, host: "localhost" } });
    expect(await load(project, { home, env: { MEANWHILE_PORT: "3", MEANWHILE_LOG: "error" } })).toMatchObject({
      http: { port: 3 },
      logLevel: "error",
    });
    expect(await load(project, { home, env: { MEANWHILE_PORT: "3" }, flags: { port: 4 } })).toMatchObject({
      http: { port: 4 },
    });
  });

  test("a TypeScript file is loaded as it is, folders relative to it", async () => {
    const settings = await load({
      "meanwhile.config.ts":
        'import { defineConfig } from "meanwhile";\nexport default defineConfig({ commands: ["tools"], bundled: false, mcp() {} } satisfies object);',
      "tools/readme.md": "",
    });
    expect(settings.commandFolders).toEqual([path.join(path.dirname(settings.configFile as string), "tools")]);
    expect(settings.mcp).toBeTypeOf("function");
  });

  test("a folder of commands that the project's config names has to exist, unless others are typed", async () => {
    const config = '{ "commands": ["commands", "nothere"] }';
    const files = { "meanwhile.config.json": config, "commands/readme.md": "" };
    const sentence =
      /meanwhile\.config\.json: `commands` names "nothere", and there is no folder \/.*\/nothere; create it, or correct the name\.$/;
    await expect(load(files)).rejects.toThrow(sentence);
    const cwd = writeFiles(temporaryFolder(), files);
    const env = { MEANWHILE_HOME: temporaryFolder() };
    expect(() => readSettings({ cwd, env, flags: {} })).toThrow(sentence);
    expect(readSettings({ cwd, env, flags: { commands: ["commands"] } }).settings.commandFolders).toEqual([
      path.join(cwd, "commands"),
    ]);
    await expect(load({ ...files, "nothere/readme.md": "" })).resolves.toMatchObject({ name: "meanwhile" });
    // The user's own config is for every folder.
    await expect(load({}, { home: { "config.json": config } })).resolves.toMatchObject({ name: "meanwhile" });
  });

  test("the server's version is the config's, else the project's, else the program's", async () => {
    const [version, own] = ["1.4.2", programVersion()];
    const files = { "package.json": JSON.stringify({ version }), "commands/readme.md": "" };
    const versionOf = async (...of: Parameters<typeof load>) => (await load(...of)).serverVersion;
    expect(await versionOf({ ...files, "meanwhile.config.json": '{ "version": "2.0" }' })).toBe("2.0");
    expect(await versionOf({ ...files, "meanwhile.config.json": "{}" })).toBe(version);
    expect(await versionOf(files)).toBe(version);
    expect(await versionOf({ "package.json": files["package.json"] })).toBe(own);
    expect(await versionOf(files, { flags: { scope: "bundled" } })).toBe(own);
    for (const broken of ["{", "[]", "null", '{ "version": 1 }', '{ "version": "" }'])
      expect(await versionOf({ ...files, "package.json": broken }), broken).toBe(own);
    await expect(load({ "meanwhile.config.json": '{ "version": 2 }' })).rejects.toThrow("`version` must be text");
    expect(publicSettings(await load(files))).toMatchObject({ version, facts: { version: own } });
  });

  test("another version of the project is served by another daemon", async () => {
    const keyOf = async (version: string) => {
      const cwd = writeFiles(folder, { "package.json": JSON.stringify({ version }) });
      return (await loadSettings({ cwd, env: { MEANWHILE_HOME: home }, flags: {} })).daemon.key;
    };
    const [folder, home] = [writeFiles(temporaryFolder(), { "commands/readme.md": "" }), temporaryFolder()];
    const [first, second, third] = [await keyOf("1.0.0"), await keyOf("1.0.1"), await keyOf("1.0.0")];
    expect(second).not.toBe(first);
    expect(third).toBe(first);
  });

  test.each([
    ['{ "nmae": "x" }', "`nmae` is not a setting; did you mean `name`?"],
    [
      '{ "sumary": "x" }',
      "`sumary` is not a setting; there are name, version, project, instructions, commands, env, bundled,",
    ],
    [
      '{ "bundled": ["monitor", "monitr"] }',
      '`bundled` must be true, false, or a list of domains of the bundled commands (config, database, diagnose-server, ingest, monitor, transform, vault), not "monitr"',
    ],
    [
      '{ "bundled": "monitor" }',
      "`bundled` must be true, false, or a list of domains of the bundled commands (config, database,",
    ],
    ['{ "bundled": [1] }', "vault), not 1"],
    ['{ "http": { "port": "banana" } }', "`http.port` must be a whole number from 0 to 65535"],
    ['{ "http": { "port": 70000 } }', "`http.port` must be a whole number from 0 to 65535"],
    ['{ "http": [] }', "`http` must be { port, host, allowAnonymous, publicUrl, allowedOrigins }"],
    ['{ "http": { "allowAnonymous": "yes" } }', "`http.allowAnonymous` must be true or false"],
    [
      '{ "requireToken": true }',
      "`requireToken` is no setting any more, because HTTP asks for the token by itself; take it out",
    ],
    ['{ "toolPrefix": "a b" }', "`toolPrefix` must be letters, digits and _"],
    ['{ "logLevel": "loud" }', "`logLevel` must be one of debug, info, warn, error"],
    ['{ "deferral": [] }', "`deferral` must be { auto, tools, requireClientTasks,"],
    ['{ "deferral": { "auto": 1 } }', "`deferral.auto` must be true or false"],
    ['{ "deferral": { "tools": "report_build" } }', "`deferral.tools` must be a list of tool names"],
    [
      '{ "deferral": { "patienceSecs": 3 } }',
      "`deferral.patienceSecs` is not a setting; did you mean `deferral.patienceSeconds`?",
    ],
    ['{ "deferral": { "patienceSeconds": -1 } }', "`deferral.patienceSeconds` must be seconds from 0 to 604800"],
    ['{ "deferral": { "keepInlineSeconds": "600" } }', "`deferral.keepInlineSeconds` must be seconds from 0 to 604800"],
    ['{ "deferral": { "longSeconds": 604801 } }', "`deferral.longSeconds` must be seconds from 0 to 604800"],
    ['{ "logFiles": 0 }', "`logFiles` must be a whole number from 1 to 100"],
    ['{ "graceSeconds": -1 }', "`graceSeconds` must be seconds from 0 to 600"],
    ['{ "questionSeconds": 0 }', "`questionSeconds` must be seconds above 0, up to 604800"],
    ['{ "graceSeconds": "x" }', "`graceSeconds` must be seconds from 0 to 600"],
    ['{ "graceSeconds": 601 }', "`graceSeconds` must be seconds from 0 to 600"],
    ['{ "hosts": [] }', "`hosts` must be hosts by name"],
    ['{ "hosts": { "kilo": 60 } }', "`hosts.kilo` must be { limitSeconds, isExtended }"],
    [
      '{ "hosts": { "kilo": { "limitSeconds": 0 } } }',
      "`hosts.kilo.limitSeconds` must be seconds above 0, up to 604800",
    ],
    ['{ "hosts": { "kilo": { "isExtended": "no" } } }', "`hosts.kilo.isExtended` must be true or false"],
    ['{ "hosts": { "kilo": { "limit": 3 } } }', "`hosts.kilo.limit` is not a setting"],
    ['{ "hosts": { "__proto__": { "limitSeconds": 0 } } }', "`hosts.__proto__.limitSeconds` must be seconds above 0"],
    [
      '{ "env": ["A", "1X"] }',
      "`env` must be a list of names of variables, each of letters, digits and _ and not beginning with a digit",
    ],
    ['{ "env": ["A B"] }', "`env` must be a list of names of variables"],
    ['{ "env": ["A=B"] }', "`env` must be a list of names of variables"],
    ['{ "env": "ACME_KEY" }', 'such as "ACME_KEY"'],
    ['{ "followUpTools": 0 }', "`followUpTools` must be true or false"],
    ['{ "errorsAsCompleted": "no" }', "`errorsAsCompleted` must be true or false"],
    ['{ "constructor": {} }', "`constructor` is not a setting"],
    ["[]", "must hold one object"],
    ["{", "Cannot read"],
  ])("%s is refused by name", async (text, sentence) => {
    await expect(load({ "meanwhile.config.json": text })).rejects.toThrow(
      expect.objectContaining({ code: "CONFIG_INVALID", message: expect.stringContaining(sentence) }),
    );
  });

  test("a config file that throws says which file and why", async () => {
    await expect(load({ "meanwhile.config.ts": 'throw new Error("no secrets here");' })).rejects.toThrow(
      /Cannot load .*meanwhile\.config\.ts: no secrets here \(line 1\)/,
    );
  });

  test.each([
    ["meanwhile.config.ts", "export default {\n  http: { port: },\n};\n", /meanwhile\.config\.ts: .* \(line 2\)$/],
    [
      "meanwhile.config.ts",
      'import "./keys.ts";\nexport default {};\n',
      /meanwhile\.config\.ts: no keys \(.*keys\.ts:2:7\)$/,
    ],
    [
      "meanwhile.config.json",
      '{\n  "http": { "port": 1 },\n  "name": ,\n}\n',
      /meanwhile\.config\.json at line 3, column 11: Unexpected token ','\.$/,
    ],
    [
      "meanwhile.config.json",
      '{\n  "name": "x"\n',
      /meanwhile\.config\.json at line 3, column 1: Expected ',' or '}' after property value\.$/,
    ],
    [
      "meanwhile.config.json",
      '{\n  "bundled": ture\n}\n',
      /meanwhile\.config\.json at line 2, column 14: Unexpected token 'u'\.$/,
    ],
    ["meanwhile.config.json", "", /meanwhile\.config\.json at line 1, column 1: Unexpected end of JSON input\.$/],
  ])("a mistake in %s is found by its line: %j", async (file, text, sentence) => {
    await expect(load({ [file]: text, "keys.ts": '\nthrow new Error("no keys");' })).rejects.toThrow(
      expect.objectContaining({ code: "CONFIG_INVALID", message: expect.stringMatching(sentence) }),
    );
  });

  test.each([
    [{ env: { MEANWHILE_PORT: "x" } }, 'MEANWHILE_PORT must be a whole number from 0 to 65535, not "x".'],
    [{ env: { MEANWHILE_LOG: "loud" } }, 'MEANWHILE_LOG must be one of debug, info, warn, error, not "loud".'],
    [{ env: { MEANWHILE_AUTO_TASK: "yes" } }, 'MEANWHILE_AUTO_TASK must be 0 or 1, not "yes".'],
    [{ env: { MEANWHILE_AUTO_TASK: "01" } }, 'MEANWHILE_AUTO_TASK must be 0 or 1, not "01".'],
    [
      { env: { MEANWHILE_AUTO_TASK_REQUIRE_CLIENT_CAP: "true" } },
      'MEANWHILE_AUTO_TASK_REQUIRE_CLIENT_CAP must be 0 or 1, not "true".',
    ],
    [{ env: { MEANWHILE_AUTO_TASK_UNSOLICITED: "2" } }, 'MEANWHILE_AUTO_TASK_UNSOLICITED must be 0 or 1, not "2".'],
    [
      { env: { MEANWHILE_AUTO_TASK_TOOLS: "a b" } },
      'MEANWHILE_AUTO_TASK_TOOLS must be tool names with commas between them, not "a b".',
    ],
    [{ flags: { commands: ["nowhere"] } }, "--commands: there is no folder"],
  ])("%j is refused by name", async (options, sentence) => {
    const refused = load({}, options);
    await expect(refused).rejects.toThrow(sentence);
    await expect(refused).rejects.toThrow(UsageError);
  });
});

describe("settings of deferral", () => {
  const config = (value: object) => ({ "meanwhile.config.json": JSON.stringify(value) });
  const deferral = async (files: Record<string, string>, options: Parameters<typeof load>[1] = {}) =>
    (await load(files, options)).deferral;

  test("are exactly the defaults with no file and no variable set", async () => {
    const settings = await load();
    expect(settings.deferral).toEqual(defaultDeferral);
    expect(settings).toMatchObject({ hosts: {}, hostName: undefined, followUpTools: true, errorsAsCompleted: false });
  });

  test("an empty variable is no variable", async () => {
    const names = ["", "_TOOLS", "_REQUIRE_CLIENT_CAP", "_UNSOLICITED"].map((end) => `MEANWHILE_AUTO_TASK${end}`);
    const env = Object.fromEntries([...names, "MEANWHILE_HOST"].map((name) => [name, ""]));
    expect(await load({}, { env })).toMatchObject({ deferral: defaultDeferral, hostName: undefined });
    expect(await deferral({}, { env: { MEANWHILE_AUTO_TASK_TOOLS: " , " } })).toEqual(defaultDeferral);
  });

  test.each([
    [{ MEANWHILE_AUTO_TASK: "0" }, { isAuto: false }],
    [{ MEANWHILE_AUTO_TASK: "1" }, {}],
    [{ MEANWHILE_AUTO_TASK_TOOLS: "report_build, vault_index,," }, { tools: ["report_build", "vault_index"] }],
    [{ MEANWHILE_AUTO_TASK_REQUIRE_CLIENT_CAP: "1" }, { requiresClientTasks: true }],
    [{ MEANWHILE_AUTO_TASK_REQUIRE_CLIENT_CAP: "0" }, {}],
    [{ MEANWHILE_AUTO_TASK_UNSOLICITED: "1" }, { isUnsolicited: true }],
    [{ MEANWHILE_AUTO_TASK_UNSOLICITED: "0" }, {}],
  ])("%j changes nothing else", async (env, change) => {
    expect(await deferral({}, { env })).toEqual({ ...defaultDeferral, ...change });
  });

  test.each([
    [{ auto: false }, { isAuto: false }],
    [{ tools: [] }, { tools: [] }],
    [{ requireClientTasks: true }, { requiresClientTasks: true }],
    [{ unsolicited: true }, { isUnsolicited: true }],
    [{ patienceSeconds: 2.5 }, { patienceMs: 2_500 }],
    [{ longSeconds: 30 }, { longFromMs: 30_000 }],
    [{ keepInlineSeconds: 0 }, { keepInlineMs: 0 }],
  ])("a file's %j changes nothing else", async (said, change) => {
    expect(await deferral(config({ deferral: said }))).toEqual({ ...defaultDeferral, ...change });
  });

  test("the environment wins over the project's file, that over the user's, one by one", async () => {
    const home = {
      "config.json":
        '{ "deferral": { "auto": false, "patienceSeconds": 1, "tools": ["a"] }, "hosts": { "x": { "limitSeconds": 1 } } }',
    };
    const project = config({
      deferral: { auto: true, patienceSeconds: 2, unsolicited: true },
      hosts: { y: { isExtended: true } },
    });
    const env = { MEANWHILE_AUTO_TASK: "0", MEANWHILE_AUTO_TASK_TOOLS: "b", MEANWHILE_AUTO_TASK_UNSOLICITED: "0" };
    expect(await deferral({}, { home })).toEqual({
      ...defaultDeferral,
      isAuto: false,
      patienceMs: 1_000,
      tools: ["a"],
    });
    expect(await deferral(project, { home })).toEqual({
      ...defaultDeferral,
      isAuto: true,
      patienceMs: 2_000,
      tools: ["a"],
      isUnsolicited: true,
    });
    expect(await deferral(project, { home, env })).toEqual({
      ...defaultDeferral,
      isAuto: false,
      patienceMs: 2_000,
      tools: ["b"],
    });
    expect((await load(project, { home })).hosts).toEqual({ x: { limitSeconds: 1 }, y: { isExtended: true } });
  });

  test("the other switches, the host's name, and all of it visible to commands", async () => {
    const settings = await load(config({ followUpTools: false, errorsAsCompleted: true }), {
      env: { MEANWHILE_HOST: " opencode " },
    });
    expect(settings).toMatchObject({ followUpTools: false, errorsAsCompleted: true, hostName: "opencode" });
    expect(publicSettings(settings)).toMatchObject({
      followUpTools: false,
      hosts: {},
      facts: { hostName: "opencode" },
    });
  });

  test("what commands see is named as a config file names it: written into one, it means the same", async () => {
    const all = {
      name: "x",
      commands: ["c"],
      toolPrefix: "p",
      http: { port: 1, host: "::1", allowAnonymous: true },
      logLevel: "warn",
      deferral: {
        auto: false,
        tools: ["a"],
        requireClientTasks: true,
        unsolicited: true,
        patienceSeconds: 1,
        longSeconds: 2,
        keepInlineSeconds: 3,
      },
    };
    for (const said of [{}, all]) {
      const { facts: _facts, commands, ...shown } = publicSettings(await load({ ...config(said), "c/x.ts": "" }));
      expect(() => checkConfig({ ...shown, commands }, "shown")).not.toThrow();
      const {
        facts: _again,
        commands: _folders,
        ...again
      } = publicSettings(await load({ ...config(shown), "c/x.ts": "" }));
      expect(again).toEqual(shown);
    }
  });
});

describe("settings without running a config that is code", () => {
  const text = 'export default { name: "mine", commands: ["tools"], mcp() {} };';
  const notLoaded = "meanwhile.config.ts has not been loaded yet; `meanwhile tools` loads it.";

  function folder() {
    const cwd = writeFiles(temporaryFolder(), { "meanwhile.config.ts": text, "tools/x.ts": "" });
    return { cwd, env: { MEANWHILE_HOME: path.join(cwd, "home") }, flags: {} };
  }

  test("are those of the last load, for this very file and text", async () => {
    const from = folder();
    expect(readSettings(from)).toMatchObject({
      notice: notLoaded,
      settings: { name: "meanwhile", configFile: path.join(from.cwd, "meanwhile.config.ts") },
    });
    const loaded = await loadSettings(from);
    const { settings, notice } = readSettings(from);
    expect(notice).toBeUndefined();
    expect(settings).toEqual({ ...loaded, mcp: undefined });
    const copy = { ...folder(), env: from.env };
    expect(readSettings(copy), "the same text in another folder").toMatchObject({
      notice: notLoaded,
      settings: { name: "meanwhile" },
    });
    writeFiles(from.cwd, { "meanwhile.config.ts": `${text}\n` });
    expect(readSettings(from)).toMatchObject({
      notice: "meanwhile.config.ts has changed since it was last loaded; `meanwhile tools` loads it.",
      settings: { name: "mine", project: loaded.project },
    });
  });

  test("do without what is damaged, or what this version does not take", async () => {
    const from = folder();
    await loadSettings(from);
    const run = path.join(from.cwd, "home/run");
    const [name = ""] = readdirSync(run);
    expect(statSync(path.join(run, name)).mode & 0o777).toBe(0o600);
    const whole = JSON.parse(readFileSync(path.join(run, name), "utf8")) as object;
    for (const damaged of [
      "",
      "null",
      "{",
      JSON.stringify({ ...whole, said: { nmae: "x" } }),
      JSON.stringify({ ...whole, said: 5 }),
    ]) {
      writeFiles(run, { [name]: damaged });
      const { notice, settings } = readSettings(from);
      expect({ name: settings.name, isTold: notice !== undefined }, damaged).toEqual({
        name: "meanwhile",
        isTold: true,
      });
    }
  });
});

describe("pack.roots", () => {
  test("are whole paths, of the user's home too; a project's stand in place of the user's", async () => {
    const home = { "config.json": '{ "pack": { "roots": ["~/notes", "/data"] } }' };
    expect((await load({}, { home })).pack).toMatchObject({ roots: [path.join(homedir(), "notes"), "/data"] });
    expect((await load({ "meanwhile.config.json": '{ "pack": { "roots": [] } }' }, { home })).pack.roots).toEqual([]);
    expect((await load()).pack.roots).toEqual([]);
  });

  test.each(['["notes"]', '["~other/notes"]', '"/data"', "[1]", '[""]'])("%s is refused", async (roots) => {
    await expect(load({ "meanwhile.config.json": `{ "pack": { "roots": ${roots} } }` })).rejects.toThrow(
      "`pack.roots` must be a list of whole paths, or such that begin with ~/",
    );
  });
});
