import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { verbs } from "../../src/cli/verb-list.ts";
import { defineCommand } from "../../src/command/command.ts";
import { openTasks } from "../../src/runtime/open-tasks.ts";
import { loadSettings } from "../../src/settings/settings.ts";
import { runCli, startCli, startHttpHere } from "../helpers/cli.ts";
import { DaemonHomeHere, type ProxyHere } from "../helpers/daemon-here.ts";
import "../helpers/diagnose.ts";
import { cleanUp, shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { overHttp, WireClient } from "../helpers/wire.ts";

/** A folder that somebody has cloned. Each of its files leaves a mark when it runs. */

const mark = (marker: string, what: string) =>
  `import { appendFileSync } from "node:fs";\nappendFileSync(${JSON.stringify(marker)}, "${what}\\n");\n`;
const evil = (marker: string, what: string) => `import { defineCommand } from "meanwhile";
import { z } from "zod";
${mark(marker, what)}
export default defineCommand({
  summary: "Do a little harm",
  description: "For whoever comes by.",
  input: z.object({ kind: z.enum(["small", "large"]).describe("How much"), where: z.string().optional() }),
  examples: ["small"],
  complete: { where: () => { appendFileSync(${JSON.stringify(marker)}, "completer\\n"); return ["here"]; } },
  run: () => ({ done: true }),
});
`;

interface Folder {
  readonly cwd: string;
  readonly home: string;
  readonly marker: string;
  /** What has run. */
  marks(): string[];
  run(...words: string[]): ReturnType<typeof runCli>;
  /** The replies of bash to Tab at the end of a line. */
  reply(line: string): Promise<string[]>;
}

function emptyFolder(): Folder {
  const folder = temporaryFolder();
  const cwd = path.join(folder, "cloned");
  const home = path.join(folder, "home");
  const marker = path.join(folder, "marker");
  mkdirSync(cwd);
  const run = (...words: string[]) => runCli(words, { cwd, env: { MEANWHILE_HOME: home } });
  return {
    cwd,
    home,
    marker,
    marks: () => (existsSync(marker) ? readFileSync(marker, "utf8").trim().split("\n") : []),
    run,
    async reply(line) {
      const { code, stdout, stderr } = await run("_complete", "--shell", "bash", "--", " \t\n\"'@><=;|&(:", line);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      return stdout.split("\n").slice(1, -1);
    },
  };
}

const configs = {
  "meanwhile.config.ts": (marker: string) => `${mark(marker, "config")}export default { name: "evil" };\n`,
  "meanwhile.config.js": (marker: string) => `${mark(marker, "config")}export default {};\n`,
  "meanwhile.config.mjs": (marker: string) => `${mark(marker, "config")}export default { commands: ["commands"] };\n`,
  "meanwhile.config.json": () => JSON.stringify({ commands: ["commands"] }),
};

function makeHostile(folder: Folder, config: keyof typeof configs = "meanwhile.config.ts"): Folder {
  const { cwd, marker } = folder;
  writeFiles(cwd, {
    [config]: configs[config](marker),
    "commands/evil/run.ts": evil(marker, "command"),
    "commands/evil/index.ts": evil(marker, "domain"),
    "commands/late.mjs": evil(marker, "late"),
    "package.json": JSON.stringify({ type: "module", main: "./preload.js", imports: { "#x": "./preload.js" } }),
    "preload.js": mark(marker, "preload"),
    "tsconfig.json": JSON.stringify({
      compilerOptions: { paths: { meanwhile: ["./preload.js"], zod: ["./preload.js"] } },
    }),
    "node_modules/meanwhile/package.json": JSON.stringify({ name: "meanwhile", type: "module", exports: "./index.js" }),
    "node_modules/meanwhile/index.js": `${mark(marker, "package")}export const defineCommand = (it) => it; export class CommandError extends Error {}\n`,
    "node_modules/zod/package.json": JSON.stringify({ name: "zod", type: "module", exports: "./index.js" }),
    "node_modules/zod/index.js": mark(marker, "package"),
    ".env": `NODE_OPTIONS=--import=${path.join(cwd, "preload.js")}\n`,
    ".node_modules/x": "",
  });
  return folder;
}

const hostile = (config?: keyof typeof configs) => makeHostile(emptyFolder(), config);
/** A task that no store knows. */
const nobody = "00000000-0000-4000-8000-000000000000";

/** Every verb, and the ways to type it that run nothing of the project: a verb without a row does not compile. */
const lines: Readonly<Record<keyof typeof verbs, readonly (readonly string[])[]>> = {
  serve: [["serve", "--help"]],
  wrap: [["wrap"], ["wrap", "--help"], ["wrap", "--from", "package.json"]],
  worker: [["worker", "--help"]],
  call: [
    ["call", "--help"],
    ["call", "http://127.0.0.1:1/mcp", "evil_run"],
  ],
  tools: [
    ["tools", "--help"],
    ["tools", "http://127.0.0.1:1/mcp"],
  ],
  init: [["init"], ["init", "--help"], ["init", "mine"], ["init", "--package", "published"], ["init", "commands/evil"]],
  new: [["new", "good/day"]],
  tasks: [
    ["tasks"],
    ["tasks", "list"],
    ["tasks", "list", "--live", "--json"],
    ["tasks", "show", nobody],
    ["tasks", "result", nobody, "--wait"],
    ["tasks", "watch"],
    ["tasks", "watch", nobody],
    ["tasks", "cancel", nobody],
    ["tasks", "answer", nobody],
    ["tasks", "progress"],
    ["tasks", "progress", "7"],
    ["tasks", "prune"],
  ],
  stats: [["stats"], ["stats", "--json"]],
  hosts: [["hosts"], ["hosts", "--json"], ["hosts", "forget", "my-host"]],
  diagnose: [
    ["diagnose", "--help"],
    ["diagnose", "http://127.0.0.1:1/mcp", "--budget", "1s", "--async"],
    ["diagnose", "http://127.0.0.1:1/mcp", "--budget", "1s"],
  ],
  compare: [["compare", "report.json", "report.json"]],
  setup: [
    ["setup"],
    ["setup", "--dry-run"],
    ["setup", "--all", "--dry-run"],
    ["setup", "cursor", "--project", "--dry-run"],
  ],
  daemon: [
    ["daemon"],
    ["daemon", "status"],
    ["daemon", "stop"],
    ["daemon", "stop", "--all"],
    ["daemon", "restart"],
    ["daemon", "logs"],
  ],
  upstreams: [
    ["upstreams"],
    ["upstreams", "status", "--json"],
    ["upstreams", "restart", "x"],
    ["upstreams", "logs", "x"],
  ],
  store: [
    ["store"],
    ["store", "migrate"],
    ["store", "migrate", "--store", "tasks.db"],
    ["store", "copy", "--from", "tasks.db"],
  ],
  token: [["token"]],
  keys: [
    ["keys"],
    ["keys", "list", "--json"],
    ["keys", "add", "ci"],
    ["keys", "rotate", "ci"],
    ["keys", "revoke", "ci"],
  ],
  whoami: [["whoami"], ["whoami", "--json"], ["whoami", "--target", "http://127.0.0.1:1/mcp"]],
  completion: [["completion", "bash"]],
};

/** What is no verb, and runs nothing of the project either. */
const others: readonly (readonly [string, readonly (readonly string[])[]])[] = [
  ["no verb at all", [[], ["--version"], ["--help"], ["help"], ["mistyped"], ["taks", "list"], ["evi", "rn"]]],
  [
    "help of its commands",
    [
      ["help", "evil"],
      ["help", "evil", "run"],
      ["evil", "run", "-h"],
      ["evil", "--help"],
      ["late", "small", "--help"],
    ],
  ],
  [
    "help where the folder is named",
    [
      ["--commands", "commands", "evil", "run", "--help"],
      ["help", "serve"],
    ],
  ],
  ["what comes with Meanwhile", [["config"], ["config", "path", "--async"], ["config", "path"]]],
];

const good =
  'import { defineCommand } from "meanwhile"; export default defineCommand({ summary: "Good day", effects: "read", run: () => ({}) });';

test("every verb has its row", () => {
  expect(Object.keys(lines)).toEqual(Object.keys(verbs));
});

describe("in a cloned folder nothing of it runs by", () => {
  test.for([...Object.entries(lines), ...others])("%s", async ([, rows]) => {
    const { cwd, run, marks } = hostile();
    writeFileSync(path.join(cwd, "report.json"), "{}");
    for (const words of rows) {
      const { code, stdout, stderr } = await run(...words);
      expect([0, 1, 2], `${words.join(" ")}: ${stdout}${stderr}`).toContain(code);
      expect(marks(), words.join(" ")).toEqual([]);
    }
  });

  test.for(["meanwhile.config.js", "meanwhile.config.mjs", "meanwhile.config.json"] as const)(
    "help, tasks and daemon with %s",
    async (config) => {
      const { run, marks } = hostile(config);
      for (const words of [["--help"], ["tasks", "list"], ["daemon", "status"], ["evil", "--help"], ["mistyped"]])
        await run(...words);
      expect(marks()).toEqual([]);
    },
  );

  test("Tab", async () => {
    const { reply, run, marks } = hostile();
    expect(await reply("meanwhile ev")).toEqual(["evil"]);
    expect(await reply("meanwhile evil ")).toEqual(["run"]);
    expect(await reply("meanwhile evil run --")).toEqual([]);
    expect(await reply("meanwhile call . ")).toContain("evil_run");
    expect(await reply("meanwhile tasks show ")).toEqual([]);
    for (const shell of ["zsh", "fish"])
      expect(await run("_complete", "--shell", shell, "--", "evil", "")).toMatchObject({
        code: 0,
        stdout: "values\nrun\n",
      });
    expect(marks()).toEqual([]);
  });

  test("help and Tab, when the files are links that lead nowhere or far too large", async () => {
    const { cwd, run, marks } = emptyFolder();
    mkdirSync(path.join(cwd, "commands"));
    symlinkSync("/nowhere", path.join(cwd, "commands/lost.ts"));
    writeFileSync(path.join(cwd, "commands/large.ts"), "x".repeat(5_000_000));
    for (const words of [
      ["--help"],
      ["tasks", "list"],
      ["lost", "--help"],
      ["large", "--help"],
      ["_complete", "--shell", "zsh", "--", "large", ""],
    ])
      expect(await run(...words), words.join(" ")).toMatchObject({ code: 0 });
    expect(marks()).toEqual([]);
  });
});

test("a bundled command's words run nothing of a cloned folder that has the same, until its commands were loaded as they are", async () => {
  const { cwd, run, marks, marker } = emptyFolder();
  const file = path.join(cwd, "commands/config/path.mjs");
  const text = (what: string) =>
    `import { defineCommand } from "meanwhile";\n${mark(marker, what)}export default defineCommand({ summary: "x", run: () => ({ isOwn: true }) });\n`;
  writeFiles(cwd, {
    "commands/config/path.mjs": text("path"),
    "commands/transform/small.mjs": text("small"),
    "commands/vault.mjs": text("vault"),
  });
  const refused = {
    code: 2,
    stderr: expect.stringContaining(
      `\`config path\` is a bundled command, and ${file} would take its place; run \`meanwhile tools\``,
    ),
  };
  expect(await run("config", "path")).toMatchObject(refused);
  expect(await run("transform", "small")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("`transform` is a bundled command"),
  });
  expect(await run("vault", "status")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("`vault status` is a bundled command"),
  });
  // Nor where the folder's own config leaves the bundled ones out.
  writeFileSync(path.join(cwd, "meanwhile.config.json"), JSON.stringify({ bundled: false }));
  expect(await run("config", "path", "--async")).toMatchObject(refused);
  expect(marks()).toEqual([]);
  expect(await run("tools")).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(
      `! \`config path\` takes the place of a bundled command in a terminal here: ${file}`,
    ),
  });
  expect(await run("config", "path")).toMatchObject({ code: 0, stdout: expect.stringContaining("isOwn") });
  writeFileSync(file, text("changed"));
  expect(await run("config", "path")).toMatchObject(refused);
  expect(await run("--no-bundled", "config", "path")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("isOwn"),
  });
});

test("the verbs that need a config refuse one that is far too large, with its size; the others do not read it", async () => {
  for (const name of ["meanwhile.config.json", "meanwhile.config.mjs"]) {
    const { cwd, run } = emptyFolder();
    const file = path.join(cwd, name);
    writeFileSync(file, "");
    truncateSync(file, 1.5 * 2 ** 30);
    const sentence = `✗ ${file} has 1610612736 bytes, and a config has at most 1048576; take out what is no setting.\n`;
    // The stdio proxy reads a config of code in a child process: see test/system/cli/hostile-folder.test.ts.
    const [needing, others] = name.endsWith(".json")
      ? [[["tools"], ["tasks", "list"], ["serve"], ["config", "path"]], []]
      : [
          [["tools"]],
          [
            ["tasks", "list"],
            ["config", "path"],
          ],
        ];
    for (const words of needing) {
      const { code, stderr } = await run(...words);
      expect({ words, code, stderr }).toEqual({ words, code: 70, stderr: sentence });
    }
    for (const words of others) expect(await run(...words), words.join(" ")).toMatchObject({ code: 0 });
  }
});

test("the verbs that list or run its commands do run it", async () => {
  const { cwd, run, marks, marker } = hostile();
  rmSync(path.join(cwd, "node_modules"), { recursive: true });
  for (const words of [["tools"], ["evil", "run", "small"], ["late", "large", "--async"]]) {
    rmSync(marker, { force: true });
    expect(await run(...words)).toMatchObject({ code: 0 });
    expect(marks(), words.join(" ")).toContain("config");
  }
});

describe("after a load, help and completion show the project's commands, and still run nothing", () => {
  const loaded = shareAmongTests(async () => {
    const folder = hostile();
    rmSync(path.join(folder.cwd, "node_modules"), { recursive: true });
    expect(await folder.run("tools")).toMatchObject({ code: 0 });
    rmSync(folder.marker);
    return folder;
  });

  test("help", async () => {
    const { run, marks } = await loaded();
    const { stdout, stderr } = await run("evil", "run", "--help");
    expect(stderr).toBe("");
    expect(stdout).toMatch(
      /^Usage: meanwhile evil run <kind> \[options\]\n\nDo a little harm\n\nFor whoever comes by\.\n/,
    );
    expect(stdout).toContain("How much (one of small, large)");
    expect(stdout).toContain("--where <value>");
    expect(stdout).toContain("$ meanwhile evil run small");
    expect((await run("help", "late")).stdout).toMatch(/^Usage: meanwhile late <kind>/);
    expect(await run("--help")).toMatchObject({
      code: 0,
      stderr: "",
      stdout: expect.stringMatching(/^ {2}evil +run$/m),
    });
    expect(marks()).toEqual([]);
  });

  test("completion", async () => {
    const { run, marks, reply } = await loaded();
    expect(await reply("meanwhile evil run ")).toEqual(["small", "large"]);
    expect(await reply("meanwhile evil run small --w")).toEqual(["--where"]);
    expect(await reply("meanwhile evil run small --where ")).toEqual([]);
    expect(await reply("meanwhile call . evil_run kind=")).toEqual(["small", "large"]);
    expect((await run("_complete", "--shell", "fish", "--", "evil", "")).stdout).toBe(
      "values\nrun\tDo a little harm\nsmall\nlarge\n",
    );
    expect(marks()).toEqual([]);
  });

  test("a file that has changed since is a stranger's again, and so is the config", async () => {
    const { cwd, run, marks, marker } = await loaded();
    writeFileSync(path.join(cwd, "commands/evil/run.ts"), evil(marker, "changed"));
    expect((await run("evil", "run", "--help")).stdout).toMatch(
      /^Usage: meanwhile evil run …\n\n\S+run\.ts has not been loaded as it is now;\nrun `meanwhile tools` once/,
    );
    writeFileSync(path.join(cwd, "meanwhile.config.ts"), `${mark(marker, "changed")}export default {};`);
    const { code, stderr } = await run("stats");
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: "! meanwhile.config.ts has changed since it was last loaded; `meanwhile tools` loads it.\n",
    });
    expect(marks()).toEqual([]);
  });
});

describe("a task that waits for a worker", () => {
  /** Runs a command, which makes the folder known, and queues a task that no worker runs. */
  const queued = async ({ cwd, home }: Folder) => {
    const worked = startCli(["late", "small", "--detach"], { cwd, env: { MEANWHILE_HOME: home } });
    await worked.exited;
    await worked.background();
    const settings = await loadSettings({ cwd, env: { MEANWHILE_HOME: home }, flags: {} });
    const tasks = await openTasks(settings);
    const entry = {
      toolName: "late",
      path: ["late"],
      file: "late.mjs",
      command: defineCommand({ summary: "x", run: () => ({}) }),
    };
    const { task } = await tasks.engine.create({
      entry,
      input: { kind: "large" },
      caller: tasks.localKey,
      name: "late",
      reason: "test",
    });
    await tasks.close();
    return task.taskId;
  };

  test("is run where the files are those that made it, and not where they have changed", async () => {
    const folder = hostile("meanwhile.config.json");
    const { cwd, run, marks, marker, home } = folder;
    rmSync(path.join(cwd, "node_modules"), { recursive: true });
    expect(await run("tasks", "result", await queued(folder), "--wait")).toMatchObject({ code: 0 });
    const next = await queued(folder);
    writeFileSync(path.join(cwd, "commands/evil/run.ts"), evil(marker, "changed"));
    rmSync(marker);
    const watching = startCli(["tasks", "watch", next], { cwd, env: { MEANWHILE_HOME: home } });
    await watching.says(/has changed since it was last loaded, so nobody is started to run it/);
    watching.signal("SIGINT");
    await watching.exited;
    await watching.background();
    expect(marks()).toEqual([]);
    expect((await run("tasks", "show", next)).stdout).toContain("status: queued");
  });
});

describe("a server that was there before the project", () => {
  const names = async (client: WireClient) => JSON.stringify((await client.request("tools/list")).result);
  /** A client of `serve --in-process` that was started in the folder. */
  const connect = async ({ cwd, home }: Folder) => {
    const server = startCli(["serve", "--in-process"], { cwd, env: { MEANWHILE_HOME: home } });
    return { server, client: await server.client({ revision: "2025-11-25" }).begin() };
  };
  const sees = async ({ proxy }: { readonly proxy: ProxyHere }, text: string) =>
    void (await waitFor(() => proxy.stderr().includes(text), proxy.stderr));
  const openDaemons = ({ cwd, home }: Folder) => new DaemonHomeHere({ cwd, home });

  test("over stdio takes up nothing, also with the next daemon", async () => {
    const folder = emptyFolder();
    const daemons = openDaemons(folder);
    const client = await daemons.connect({ words: [] });
    expect(await names(client)).toContain("config_path");
    makeHostile(folder);
    await sees(client, "has become a project after this server started");
    await daemons.daemon.kill();
    const listed = await names(client);
    expect(listed).toContain("config_path");
    expect(listed).not.toContain("evil_run");
    expect(folder.marks()).toEqual([]);
  });

  test("over stdio with a folder of commands takes up no config that comes later", async () => {
    const folder = emptyFolder();
    writeFiles(folder.cwd, { "commands/good/day.ts": good });
    const daemons = openDaemons(folder);
    const client = await daemons.connect({ words: [] });
    expect(await names(client)).toContain("good_day");
    writeFiles(folder.cwd, { "meanwhile.config.ts": configs["meanwhile.config.ts"](folder.marker) });
    await daemons.daemon.kill();
    expect(await names(client)).toContain("good_day");
    expect(folder.marks()).toEqual([]);
  });

  test("in its own process takes up nothing", async () => {
    const folder = emptyFolder();
    const { server, client } = await connect(folder);
    expect(await names(client)).toContain("config_path");
    makeHostile(folder);
    await server.says(/has come after this server started/);
    expect(await names(client)).not.toContain("evil_run");
    expect(folder.marks()).toEqual([]);
  });

  test("over HTTP takes up nothing, until `meanwhile new` has made it", async () => {
    const folder = emptyFolder();
    const server = await startHttpHere([], { cwd: folder.cwd, env: { MEANWHILE_HOME: folder.home } });
    const token = server.token();
    const client = await new WireClient(overHttp(server.url, { token }), { revision: "2025-11-25" }).begin();
    cleanUp(() => client.close());
    makeHostile(folder);
    await server.says(/has come after this server started/);
    expect(await names(client)).not.toContain("evil_run");
    expect(folder.marks()).toEqual([]);
    for (const name of readdirSync(folder.cwd)) rmSync(path.join(folder.cwd, name), { recursive: true });
    expect(await folder.run("new", "good/day")).toMatchObject({ code: 0 });
    await expect.poll(() => names(client), { timeout: 40_000 }).toContain("good_day");
  });

  test("a folder that took the place of the one that `meanwhile new` has made is a stranger's", async () => {
    const folder = emptyFolder();
    expect(await folder.run("new", "good/day")).toMatchObject({ code: 0 });
    renameSync(path.join(folder.cwd, "commands"), `${folder.cwd}-commands`);
    const client = await openDaemons(folder).connect({ words: [] });
    writeFiles(folder.cwd, { "commands/evil/run.ts": evil(folder.marker, "command") });
    await sees(client, "has become a project after this server started");
    expect(await names(client)).not.toContain("evil_run");
    expect(folder.marks()).toEqual([]);
  });
});
