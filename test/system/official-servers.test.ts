/** The official servers directly, behind `durable(server).stdio()` and behind `wrap`: one script, and one transcript. */
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import type { UpstreamConfig } from "../../src/project/upstream-config.ts";
import { system } from "../../src/system/system.ts";
import { modernRevision } from "../../src/wire/revisions.ts";
import { withoutEnvelope } from "../helpers/allowed-differences.ts";
import { connectCommand, wrapHere } from "../helpers/gateway-here.ts";
import { cleanUp, shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { type Fields, type Message, takesTasks, type WireClient } from "../helpers/wire.ts";

type Way = "directly" | "durable" | "wrap";

/** What one client saw. */
interface Transcript {
  /** What initialize was answered with. */
  readonly hello: Fields;
  readonly tools: readonly Fields[];
  /** What was asked, and the answer. */
  readonly answers: readonly (readonly [asked: string, answer: Fields])[];
  /** What the server asked the client, in order. */
  readonly questions: readonly Fields[];
  /** What the server told the client, by method, in order. */
  readonly told: Readonly<Record<string, readonly Fields[]>>;
}

interface Difference {
  readonly in: readonly Exclude<Way, "directly">[];
  readonly why: string;
  /** The transcript without what may differ. */
  without(transcript: Transcript): Transcript;
}

const both = ["durable", "wrap"] as const;

/** What may differ from the server itself; nothing else may. */
const differences: readonly Difference[] = [
  {
    in: both,
    why: "every tool can be called as a task",
    without: (transcript) => ({
      ...transcript,
      hello: withoutTasks(transcript.hello),
      tools: transcript.tools.map(({ execution: _execution, ...tool }) => tool),
    }),
  },
  {
    in: both,
    why: "clients without tasks follow a job by tools of ours",
    without: (transcript) => ({
      ...transcript,
      tools: transcript.tools.filter(({ name }) => !String(name).startsWith("task_")),
    }),
  },
  {
    in: both,
    why: "`_meta` says whether a tool takes long",
    without: (transcript) => ({ ...transcript, tools: transcript.tools.map(withoutOwnMeta) }),
  },
  {
    in: both,
    why: "a client without tasks may get the handle of a job in place of what the output schema promises",
    without: (transcript) => ({
      ...transcript,
      tools: transcript.tools.map(({ outputSchema, ...tool }) => ({
        ...tool,
        ...(outputSchema !== undefined && { outputSchema: withoutEnvelope(outputSchema) }),
      })),
    }),
  },
  {
    in: both,
    why: "a completion without arguments is refused here, in words of ours",
    without: (transcript) =>
      mapAnswers(transcript, (answer, asked) => (asked === "completion/complete {}" ? {} : answer)),
  },
  {
    in: both,
    why: "`logging/setLevel` is checked here, in words of ours",
    without: (transcript) => mapAnswers(transcript, (answer, asked) => (isWrongLevel(asked) ? {} : answer)),
  },
  {
    in: both,
    why: "a tool that can only be called as a task is followed to its end for a client without tasks",
    without: (transcript) => mapAnswers(transcript, (answer, asked) => (isTaskAlone(asked) ? {} : answer)),
  },
  {
    in: both,
    why: "what has no params is sent on with empty ones",
    without: (transcript) => ({
      ...transcript,
      questions: transcript.questions.map(withParams),
      told: Object.fromEntries(
        Object.entries(transcript.told).map(([method, messages]) => [method, messages.map(withParams)]),
      ),
    }),
  },
  {
    in: both,
    why: "the tools that the server adds at its start are listed before the client comes, so their changes are no news",
    without: ({ told: { "notifications/tools/list_changed": _changes, ...told }, ...transcript }) => ({
      ...transcript,
      told,
    }),
  },
];

function withoutTasks({ capabilities, ...hello }: Fields): Fields {
  const { tasks: _tasks, ...others } = capabilities;
  return { ...hello, capabilities: others };
}

function withoutOwnMeta({ _meta, ...tool }: Fields): Fields {
  const { "meanwhile/tool": _ours, ...meta } = _meta ?? {};
  return { ...tool, ...(Object.keys(meta).length > 0 && { _meta: meta }) };
}

const withParams = ({ method, params = {} }: Fields): Fields => ({ method, params });

function mapAnswers(transcript: Transcript, map: (answer: Fields, asked: string) => Fields): Transcript {
  return { ...transcript, answers: transcript.answers.map(([asked, answer]) => [asked, map(answer, asked)]) };
}

const isWrongLevel = (asked: string) => asked.includes('"level":"loud"');
const isTaskAlone = (asked: string) => asked.includes("simulate-research-query");

// ---------------------------------------------------------------- the scripts

interface Place {
  readonly folder: string;
  readonly config: UpstreamConfig;
  /** The roots of the client at its start. */
  readonly roots: readonly Fields[];
}

const rootAt = (folder: string): Fields => ({ uri: pathToFileURL(folder).href, name: path.basename(folder) });

interface Official {
  make(): Place;
  script(recorder: Recorder, place: Place): Promise<void>;
}

const moduleFile = (name: string) =>
  createRequire(import.meta.url).resolve(`@modelcontextprotocol/server-${name}/dist/index.js`);
const node = (name: string, args: readonly string[] = []): UpstreamConfig => ({
  command: process.execPath,
  args: [moduleFile(name), ...args],
});

const filesystem: Official = {
  make() {
    const folder = writeFiles(temporaryFolder(), { "one/a.txt": "first\nsecond\n", "two/b.txt": "other\n" });
    // Without an argument the server works in its client's roots alone.
    return { folder, config: node("filesystem"), roots: [rootAt(path.join(folder, "one"))] };
  },
  async script(recorder, { folder }) {
    const [one, two] = [path.join(folder, "one"), path.join(folder, "two")];
    const isAllowed = (allowed: string) =>
      recorder.settles("list_allowed_directories", `Allowed directories:\n${allowed}`);
    await isAllowed(one);
    await recorder.call("read_text_file", { path: path.join(one, "a.txt"), head: 1 });
    await recorder.call("write_file", { path: path.join(one, "new.txt"), content: "written" });
    await recorder.call("edit_file", {
      path: path.join(one, "new.txt"),
      edits: [{ oldText: "written", newText: "edited" }],
    });
    await recorder.call("read_multiple_files", { paths: [path.join(one, "new.txt"), path.join(one, "none.txt")] });
    await recorder.call("directory_tree", { path: one });
    await recorder.call("read_text_file", { path: path.join(two, "b.txt") });
    await recorder.call("read_text_file", { path: "/etc/passwd" });
    await recorder.call("read_text_file", {});
    await recorder.call("nothing", {});
    await recorder.changeRoots([rootAt(two)]);
    await isAllowed(two);
    await recorder.call("read_text_file", { path: path.join(two, "b.txt") });
    await recorder.call("read_text_file", { path: path.join(one, "a.txt") });
    for (const method of ["resources/list", "prompts/list", "completion/complete", "no/such"])
      await recorder.ask(method);
  },
};

const memory: Official = {
  make() {
    const folder = temporaryFolder();
    const env = { MEMORY_FILE_PATH: path.join(folder, "memory.jsonl") };
    return { folder, config: { ...node("memory"), env }, roots: [] };
  },
  async script(recorder) {
    const ada = { name: "Ada", entityType: "person", observations: ["counts"] };
    const bob = { name: "Bob", entityType: "person", observations: [] };
    await recorder.call("create_entities", { entities: [ada, bob] });
    await recorder.call("create_entities", { entities: [ada] });
    await recorder.call("create_relations", { relations: [{ from: "Ada", to: "Bob", relationType: "knows" }] });
    await recorder.call("add_observations", { observations: [{ entityName: "Bob", contents: ["listens"] }] });
    await recorder.call("add_observations", { observations: [{ entityName: "Eve", contents: ["x"] }] });
    await recorder.call("search_nodes", { query: "counts" });
    await recorder.call("open_nodes", { names: ["Bob"] });
    await recorder.call("search_nodes", {});
    await recorder.call("nothing", {});
    const { result } = await recorder.ask("resources/list");
    const [{ uri }] = (result as Fields).resources as [Fields];
    await recorder.ask("resources/read", { uri });
    await recorder.ask("resources/subscribe", { uri });
    await recorder.call("delete_entities", { entityNames: ["Ada"] });
    await recorder.client.comes("notifications/resources/updated");
    await recorder.ask("resources/unsubscribe", { uri });
    await recorder.call("read_graph", {});
    for (const method of ["resources/templates/list", "prompts/list", "completion/complete"])
      await recorder.ask(method);
  },
};

const everything: Official = {
  make: () => ({ folder: temporaryFolder(), config: node("everything", ["stdio"]), roots: [rootAt("/one")] }),
  async script(recorder) {
    // The server asks a third of a second after the handshake.
    await recorder.client.comes("notifications/message", ({ params }) => isAboutRoots(params));
    await recorder.call("get-roots-list", {});
    await recorder.changeRoots([rootAt("/one"), rootAt("/two")]);
    await waitFor(
      () => recorder.client.of("notifications/message").filter(({ params }) => isAboutRoots(params)).length > 1,
    );
    await recorder.call("get-roots-list", {});
    for (const [name, args] of calls) await recorder.call(name, args);
    for (const [method, params] of requests) await recorder.ask(method, params);
  },
};

const isAboutRoots = (params: Fields | undefined) => String(params?.data).startsWith("Roots updated");

const calls: readonly (readonly [name: string, args: Fields])[] = [
  ["echo", { message: "hello" }],
  ["get-annotated-message", { messageType: "error", includeImage: true }],
  ["get-resource-links", { count: 2 }],
  ["get-resource-reference", { resourceType: "Text", resourceId: 1 }],
  ["get-structured-content", { location: "Chicago" }],
  ["get-sum", { a: 1, b: 2 }],
  ["get-sum", { a: "x" }],
  ["get-tiny-image", {}],
  ["gzip-file-as-resource", { name: "a.gz", data: "data:text/plain,hello", outputType: "resource" }],
  ["trigger-elicitation-request", {}],
  ["trigger-url-elicitation", { url: "https://example.com", elicitationId: "x" }],
  ["trigger-sampling-request", { prompt: "Say something", maxTokens: 10 }],
  ["trigger-long-running-operation", { duration: 0.1, steps: 2 }],
  ["simulate-research-query", { topic: "bees" }],
  ["nothing", {}],
];

const completion = { ref: { type: "ref/prompt", name: "completable-prompt" } };

const requests: readonly (readonly [method: string, params: Fields])[] = [
  ["resources/list", {}],
  ["resources/templates/list", {}],
  ["resources/read", { uri: "demo://resource/static/document/features.md" }],
  ["resources/read", { uri: "nothing://here" }],
  ["prompts/list", {}],
  ["prompts/get", { name: "args-prompt", arguments: { city: "Paris", state: "Texas" } }],
  ["prompts/get", { name: "nothing" }],
  ["completion/complete", { ...completion, argument: { name: "department", value: "E" } }],
  ["logging/setLevel", { level: "warning" }],
  ["logging/setLevel", { level: "loud" }],
  ["no/such", {}],
];

// ---------------------------------------------------------------- the recorder

const capabilities = { roots: { listChanged: true }, sampling: {}, elicitation: { form: {}, url: {} } };

/** A client that answers all questions, and writes down what it sees. */
class Recorder {
  readonly client: WireClient;
  #roots: readonly Fields[];
  readonly #questions: Fields[] = [];
  readonly #answers: [string, Fields][] = [];

  constructor(client: WireClient, { roots }: Place) {
    this.client = client;
    this.#roots = roots;
    for (const message of client.received) this.#receive(message);
    client.onMessage((message) => this.#receive(message));
  }

  /** Sends a request, and writes down the answer. */
  async ask(method: string, params: Fields = {}): Promise<Fields> {
    const { result, error } = await this.client.request(method, params);
    const answer = error === undefined ? { result } : { error };
    this.#answers.push([`${method} ${JSON.stringify(params)}`, answer]);
    return answer;
  }

  async call(name: string, args: Fields): Promise<Fields> {
    return await this.ask("tools/call", { name, arguments: args });
  }

  /** Calls a tool until it answers with this text, and writes that answer down. */
  async settles(name: string, text: string): Promise<void> {
    let last: Fields = {};
    const settled = async () => {
      last = (await this.client.request("tools/call", { name, arguments: {} })).result ?? {};
      return last.content?.[0]?.text === text;
    };
    await waitFor(settled, () => `${name} last answered ${JSON.stringify(last)}`);
    await this.call(name, {});
  }

  async changeRoots(roots: readonly Fields[]): Promise<void> {
    this.#roots = roots;
    await this.client.notify("notifications/roots/list_changed");
  }

  async end(): Promise<Transcript> {
    const { result } = await this.client.request("tools/list");
    const notices = this.client.received.filter(({ method, id }) => method !== undefined && id == null);
    return {
      hello: this.client.initialized,
      tools: result?.tools,
      answers: this.#answers,
      questions: this.#questions,
      told: Object.groupBy(notices, ({ method = "" }) => method) as Transcript["told"],
    };
  }

  #receive({ id, method, params }: Message): void {
    if (method === undefined || id == null) return;
    this.#questions.push({ method, params });
    void this.client.respond(id, this.#answerTo(method, params));
  }

  #answerTo(method: string, params: Fields | undefined): Fields {
    if (method === "roots/list") return { roots: this.#roots };
    if (method === "sampling/createMessage")
      return { model: "m", role: "assistant", content: { type: "text", text: "sampled" } };
    return { action: "accept", ...(params?.mode !== "url" && { content: { name: "Ann", check: true } }) };
  }
}

const embedded = path.resolve(import.meta.dirname, "../fixtures/embed/official-server.ts");
const options = { revision: "2025-11-25", capabilities };

async function connect(way: Way, { config }: Place): Promise<WireClient> {
  if (way === "directly") return await connectCommand(config, options);
  if (way === "durable") return await connectCommand({ ...config, args: [embedded, ...(config.args ?? [])] }, options);
  // Clean-ups run in reverse order: the server is told to stop when its session ends, and takes its time.
  let pids: readonly number[] = [];
  cleanUp(() => waitFor(() => pids.every((pid) => !system.isAlive(pid))));
  const gateway = await wrapHere(config);
  const client = await gateway.connect("stdio", options);
  cleanUp(() => {
    pids = gateway.pids();
  });
  return client;
}

async function record(way: Way, { make, script }: Official): Promise<Transcript> {
  const place = make();
  const recorder = new Recorder(await connect(way, place), place);
  await script(recorder, place);
  return masked(await recorder.end(), place.folder);
}

/** Without what is new in every run: the folder, times and IDs. */
function masked(transcript: Transcript, folder: string): Transcript {
  const text = JSON.stringify(transcript)
    .replaceAll(folder, "<folder>")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z|\d{1,2}:\d\d:\d\d [AP]M/g, "<time>")
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<id>");
  return JSON.parse(text) as Transcript;
}

const without = (way: Exclude<Way, "directly">, transcript: Transcript) =>
  differences
    .filter((difference) => difference.in.includes(way))
    .reduce((rest, difference) => difference.without(rest), transcript);

describe.each([
  ["filesystem, in the roots of its client", filesystem],
  ["memory", memory],
  ["everything", everything],
] as const)("the official server %s", (_name, official) => {
  const recorded = shareAmongTests(() => record("directly", official));
  test.each(["durable", "wrap"] as const)("has the same transcript behind %s", async (way) => {
    const transcript = await record(way, official);
    expect(without(way, transcript)).toEqual(without(way, await recorded()));
  });
});

describe("the list of the memory server, whose nine tools all have an output schema", () => {
  test.each([
    ["2025-06-18", {}],
    ["2025-11-25", {}],
    [modernRevision, {}],
    [modernRevision, takesTasks],
  ] as const)("has at most 800 bytes more behind wrap (%s, %j)", async (revision, capabilities) => {
    const { config } = memory.make();
    const bytesOf = async (client: WireClient) => {
      const { result } = await client.request("tools/list");
      return Buffer.byteLength(JSON.stringify((result as Fields).tools));
    };
    const own = await bytesOf(await connectCommand(config, { revision: "2025-11-25" }));
    const wrapped = await (await wrapHere(config)).connect("stdio", { revision, capabilities });
    expect((await bytesOf(wrapped)) - own).toBeLessThanOrEqual(800);
  });
});
