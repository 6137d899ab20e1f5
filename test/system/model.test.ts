import { execFileSync } from "node:child_process";
import { existsSync, linkSync, readFileSync, realpathSync, symlinkSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { killDaemons } from "../helpers/daemon.ts";
import { cleanUp, shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { runMeanwhile, startHttp, startMeanwhile, waitFor } from "../helpers/meanwhile.ts";
import { handleOf, type Message, overHttp, overPipes, type Result, WireClient } from "../helpers/wire.ts";

/**
 * A model that was told to do harm, with nothing but the bundled tools: over stdio, through the real daemon, and over
 * HTTP with the user's own token. Whatever it must not read holds this mark, which must never be in anything it is
 * sent.
 */
const mark = "KEEP-THIS-FROM-MODELS";

/** A user's files: a project that a session works in, and everything around it. */
function createUser(config?: (folders: { project: string }) => object) {
  const user = realpathSync(temporaryFolder());
  const project = writeFiles(path.join(user, "project"), {
    "a.md": "plain words",
    ".env": mark,
    ".git/config": mark,
    "deep/id_ed25519": mark,
    "deep/credentials.json": mark,
    "deep/b.md": "more words",
  });
  writeFiles(user, {
    "other/private.md": mark,
    ".ssh/id_rsa": mark,
    ".aws/credentials": mark,
    ".codex/history.jsonl": JSON.stringify({ session_id: "1", text: mark }),
  });
  symlinkSync(path.join(user, "other"), path.join(project, "out"));
  symlinkSync(path.join(user, "other/private.md"), path.join(project, "link.md"));
  symlinkSync(".env", path.join(project, "env.md"));
  linkSync(path.join(user, "other/private.md"), path.join(project, "hard.md"));
  execFileSync("mkfifo", [path.join(project, "pipe.md")]);
  const home = writeFiles(
    path.join(user, ".meanwhile"),
    config === undefined ? {} : { "config.json": JSON.stringify(config({ project })) },
  );
  return {
    user,
    project,
    home,
    started: { cwd: project, env: { HOME: user, MEANWHILE_HOME: home, PRIVATE_VARIABLE: mark } },
  };
}

interface Model {
  readonly client: WireClient;
  readonly user: string;
  readonly project: string;
  readonly home: string;
  readonly configFile: string;
}

async function overStdio(): Promise<Model> {
  const place = createUser();
  cleanUp(() => killDaemons(place.home));
  const { child } = startMeanwhile(["serve"], place.started);
  const client = await new WireClient(overPipes(child), { revision: "2025-11-25" }).begin();
  return { client, ...place, configFile: path.join(place.home, "config.json") };
}

/** Over HTTP a session has no folder of its own: here the user has opened one. */
async function overToken(): Promise<Model> {
  const place = createUser(({ project }) => ({ pack: { roots: [project] } }));
  const { url } = await startHttp([], place.started);
  const token = readFileSync(path.join(place.home, "token"), "utf8").trim();
  const client = await new WireClient(overHttp(url, { token }), { revision: "2025-11-25" }).begin();
  return { client, ...place, configFile: path.join(place.home, "config.json") };
}

const sentenceOf = ({ structuredContent }: Result) => structuredContent?.messages.at(-1)?.text ?? "";

/** Nothing that it was sent holds what it must not have. */
function expectNothingTold({ client, home }: Model): void {
  const received = JSON.stringify(client.received);
  expect(received).not.toContain(mark);
  const token = path.join(home, "token");
  if (existsSync(token)) expect(received).not.toContain(readFileSync(token, "utf8").trim());
}

const doors = [
  ["stdio", shareAmongTests(overStdio)],
  ["HTTP with the token", shareAmongTests(overToken)],
] as const;

const closed = "is closed to MCP clients; a person can open it with the setting `pack.roots`";
const outside = "lies outside the folders that are open to MCP clients";

/** A path that it must not get at, made from the places above, and why it does not. */
const paths: readonly (readonly [title: string, path: (model: Model) => string, sentence: string])[] = [
  ["another folder of the user's", ({ user }) => `${user}/other/private.md`, outside],
  ["a private key", ({ user }) => `${user}/.ssh/id_rsa`, outside],
  ["a private key by ~", () => "~/.ssh/id_rsa", outside],
  ["a cloud's credentials", ({ user }) => `${user}/.aws/credentials`, outside],
  ["the home's token", ({ home }) => `${home}/token`, outside],
  ["the way up by ..", ({ project }) => `${project}/deep/../../other/private.md`, outside],
  [
    "the way up by %2e%2e",
    ({ project }) => `${project}/deep/%2e%2e/%2e%2e/other/private.md`,
    "holds an escaped dot, slash or NUL",
  ],
  ["a link to a folder out of the root", ({ project }) => `${project}/out/private.md`, outside],
  ["a link to a file out of the root", ({ project }) => `${project}/link.md`, outside],
  ["a hard link", ({ project }) => `${project}/hard.md`, closed],
  ["a dot file", ({ project }) => `${project}/.env`, closed],
  ["a dot file behind an escape", ({ project }) => `${project}/%2Eenv`, closed],
  ["a file of a dot folder", ({ project }) => `${project}/.git/config`, closed],
  ["a link to a dot file", ({ project }) => `${project}/env.md`, closed],
  ["a key in the project", ({ project }) => `${project}/deep/id_ed25519`, closed],
  ["credentials in the project", ({ project }) => `${project}/deep/credentials.json`, closed],
  ["a device", () => "/dev/zero", outside],
  ["/proc/self/environ", () => "/proc/self/environ", outside],
  ["the disk behind /proc/self/root", ({ user }) => `/proc/self/root${user}/other/private.md`, outside],
  ["the machine's passwords", () => "/etc/shadow", outside],
];

/** Every tool that takes a path, and how it is given one. */
const tools: Readonly<Record<string, (file: string) => Readonly<Record<string, unknown>>>> = {
  transform: (file) => ({ file, engine: "text" }),
  transform_batch: (file) => ({ glob: file.replace(/[^/]+$/, "*"), engine: "text" }),
  monitor_sync: (path) => ({ path }),
  monitor_watch: (path) => ({ path, seconds: 0.01 }),
  monitor_check: (path) => ({ path }),
  monitor_filter_add: (value) => ({ list: "include_paths", value }),
  monitor_priority_add: (path) => ({ path, priority: 1 }),
  vault_index: (path) => ({ path }),
  ingest_sources: (path) => ({ paths: [path] }),
  ingest_discover: (path) => ({ roots: [path] }),
};

describe.each(doors)("a model over %s", (_door, open) => {
  test.each(paths)("does not read %s, by any tool that takes a path", async (_title, toPath, sentence) => {
    const model = await open();
    const file = toPath(model);
    for (const [tool, toInput] of Object.entries(tools)) {
      const result = await model.client.call(tool, toInput(file));
      const said = `${tool} ${file}: ${JSON.stringify(result.structuredContent)}`;
      if (tool === "transform_batch")
        expect(result.isError === true || Number(result.structuredContent?.data.files_transformed) <= 2, said).toBe(
          true,
        );
      else {
        expect(result.isError, said).toBe(true);
        expect(sentenceOf(result), tool).toContain(sentence);
        expect(sentenceOf(result), tool).toMatch(/^`(file|path|value|paths|roots)` /);
      }
    }
    expectNothingTold(model);
  });

  test("gets no word of what is closed out of a folder that is open", async () => {
    const model = await open();
    const { client, project } = model;
    expect(await client.call("transform_batch", { glob: `${project}/**/*`, engine: "text" })).toMatchObject({
      structuredContent: { data: { files_matched: 2, files_transformed: expect.any(Number) } },
    });
    expect(await client.call("transform_batch", { glob: `${project}/**/.*`, engine: "text" })).toMatchObject({
      structuredContent: { data: { files_matched: 0 } },
    });
    expect(await client.call("ingest_sources", { paths: [project] })).toMatchObject({
      structuredContent: { data: { files_seen: 2 } },
    });
    for (const query of ["KEEP", "MODELS"])
      expect(await client.call("ingest_search", { query })).toMatchObject({
        structuredContent: { data: { count: 0 } },
      });
    expect(await client.call("vault_index", { path: project })).toMatchObject({
      structuredContent: { data: { notes: 2 } },
    });
    expect((await client.call("monitor_sync", { path: project, recursive: true })).isError).not.toBe(true);
    for (const collection of ["monitor_tracked", "vault_files", "ingest_chunks", "transform_entries"])
      await client.call("database_show", { collection });
    expect((await client.call("ingest_discover")).structuredContent?.data).toMatchObject({
      sources: [],
      errors: [],
      errors_total: 0,
    });
    expect((await client.call("ingest_legacy", { ids: ["codex-prompts"] })).isError).toBe(true);
    expect(sentenceOf(await client.call("transform", { file: `${project}/pipe.md` }))).toContain("is no file");
    expectNothingTold(model);
  });

  test("opens nothing by putting it under monitor or vault itself", async () => {
    const model = await open();
    const { client, user } = model;
    for (const [tool, input] of [
      ["monitor_sync", { path: "/", recursive: true }],
      ["monitor_watch", { path: user, seconds: 0.01 }],
      ["vault_index", { path: user }],
    ] as const)
      expect(sentenceOf(await client.call(tool, input)), tool).toContain(outside);
    expect(sentenceOf(await client.call("transform", { file: `${user}/other/private.md` }))).toContain(outside);
    expectNothingTold(model);
  });

  test.each([
    ["commands", '["/tmp/evil"]'],
    ["commands", "null"],
    ["commands.0", "/tmp/evil"],
    ["env", '["SECRET"]'],
    ["bundled", "false"],
    ["bundled", "null"],
    ["mcp", "null"],
    ["http", '{"host":"127.0.0.1","port":1}'],
    ["http", "null"],
    ["http.allowAnonymous", "true"],
    ["http.port", "8080"],
    ["http.host", "::1"],
    ["diagnose", '{"allowPrivate":true}'],
    ["diagnose.allowPrivate", "true"],
    ["pack", '{"roots":["/"]}'],
    ["pack", "null"],
    ["pack.roots", '["/"]'],
    ["pack.roots", "null"],
  ])("does not set %s to %s", async (key, value) => {
    const model = await open();
    const before = existsSync(model.configFile) ? readFileSync(model.configFile, "utf8") : undefined;
    const result = await model.client.call("config_set", { key, value });
    const [name] = key.split(".");
    expect(result.isError).toBe(true);
    expect(sentenceOf(result)).toBe(
      `\`key\` ${key} is changed by a person, not through a tool: \`${name}\` is one of the settings that decide what may be done; run in a terminal: meanwhile config set ${key} …`,
    );
    expect(existsSync(model.configFile) ? readFileSync(model.configFile, "utf8") : undefined).toBe(before);
  });

  test("finds no other way to write a setting, and cannot confirm for its user", async () => {
    const model = await open();
    const { client, configFile } = model;
    const before = existsSync(configFile) ? readFileSync(configFile, "utf8") : undefined;
    for (const key of ["toolPrefix", "instructions", "name"]) {
      const asked = await client.call("config_set", { key, value: "mine" });
      const { job_id, status } = handleOf(asked);
      expect(status, key).toBe("input_required");
      const answered = await client.call("task_answer", { job_id, answers: { q1: { confirm: true } } });
      expect(answered.isError, key).toBe(true);
      await client.call("task_cancel", { job_id });
    }
    const odd = [
      "HTTP.port",
      " http.port",
      "http.port ",
      "['http'].port",
      "__proto__.http.port",
      "constructor",
      "config.http.port",
      ".http.port",
      "http..port",
      "",
    ];
    for (const key of odd) expect((await client.call("config_set", { key, value: "8080" })).isError, key).toBe(true);
    expect(existsSync(configFile) ? readFileSync(configFile, "utf8") : undefined).toBe(before);
  });
});

test("a person who is asked decides, and a person in a terminal is not asked", async () => {
  const { started, home } = createUser();
  onTestFinished(() => killDaemons(home));
  const { child } = startMeanwhile(["serve"], started);
  const link = overPipes(child);
  const client = await new WireClient(link, { revision: "2025-11-25", capabilities: { elicitation: {} } }).begin();
  const isQuestion = ({ method }: Message) => method === "elicitation/create";
  for (const [at, action] of (["decline", "accept"] as const).entries()) {
    const { answer } = client.startCall("config_set", { key: "toolPrefix", value: "wksm" });
    const asked = await waitFor(() => client.received.filter(isQuestion)[at]);
    expect(asked.params).toMatchObject({ message: "Change the setting toolPrefix to wksm?" });
    const result = { action, ...(action === "accept" && { content: { confirm: true } }) };
    link.send({ jsonrpc: "2.0", id: asked.id, result } as unknown as Message, { revision: "2025-11-25" });
    expect((await answer).result?.isError === true).toBe(action === "decline");
    expect(existsSync(path.join(home, "config.json"))).toBe(action === "accept");
  }
  expect(await runMeanwhile(["config", "set", "pack.roots", '["~/other"]'], started)).toMatchObject({ code: 0 });
  expect(await runMeanwhile(["config", "set", "http.port", "8080"], started)).toMatchObject({ code: 0 });
  expect(JSON.parse(readFileSync(path.join(home, "config.json"), "utf8"))).toEqual({
    toolPrefix: "wksm",
    pack: { roots: ["~/other"] },
    http: { port: 8080 },
  });
});

test("two sessions of one daemon mean the files of their own folders by the same name, also as tasks", async () => {
  const { started, home, project, user } = createUser();
  onTestFinished(() => killDaemons(home));
  const open = async (cwd: string) =>
    await new WireClient(overPipes(startMeanwhile(["serve"], { ...started, cwd }).child), {
      revision: "2025-11-25",
    }).begin();
  const other = writeFiles(path.join(user, "second"), { "a.md": "other words", "deep/b.md": "other again" });
  const clients = [await open(project), await open(other), await open("/")] as const;
  const texts = await Promise.all(
    clients.map(async (client) => (await client.call("transform", { file: "a.md" })).structuredContent),
  );
  expect(texts).toMatchObject([
    { data: { text: "plain words" } },
    { data: { text: "other words" } },
    { success: false },
  ]);
  expect(texts[2]?.messages.at(-1)?.text).toContain(
    "`file` a.md is relative, and this server works in no folder of yours",
  );
  // The same call, at the same time, of the same caller: not the same run.
  const made = await Promise.all(
    [clients[0], clients[1]].map(async (client) => {
      const { task } = await client.call("monitor_sync", { path: "deep" }, { task: {} });
      const { result } = await client.request("tasks/result", { taskId: task?.taskId });
      return { taskId: task?.taskId, root: result?.structuredContent?.data.path };
    }),
  );
  expect(made.map(({ root }) => root)).toEqual([path.join(project, "deep"), path.join(other, "deep")]);
  expect(new Set(made.map(({ taskId }) => taskId)).size).toBe(2);
});

test("what a person has typed is open to the next session, and a task that was typed runs as that, wherever it is run", async () => {
  const { started, home, project, user } = createUser();
  onTestFinished(() => killDaemons(home));
  const type = (...words: string[]) => runMeanwhile(words, started);
  expect((await type("transform", ".env", "--json")).stdout).toContain(mark);
  expect((await type("transform", "../.ssh/id_rsa", "--json", "--async")).stdout).toContain(mark);
  writeFiles(user, { "notes/plan.md": "the plan", "notes/.hidden.md": mark });
  const client = await new WireClient(overPipes(startMeanwhile(["serve"], started).child), {
    revision: "2025-11-25",
  }).begin();
  const read = async (file: string) => await client.call("transform", { file });
  expect(sentenceOf(await read("~/notes/plan.md"))).toContain(outside);
  expect(await type("monitor", "sync", "../notes")).toMatchObject({ code: 0 });
  expect(await read("~/notes/plan.md")).toMatchObject({ structuredContent: { data: { text: "the plan" } } });
  expect(sentenceOf(await read("~/notes/.hidden.md"))).toContain(closed);
  expect(sentenceOf(await read("../.ssh/id_rsa"))).toContain(outside);
  expectNothingTold({ client, user, project, home, configFile: "" });
});
