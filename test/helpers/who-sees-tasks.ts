import { randomUUID } from "node:crypto";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { runCli, startHttpHere } from "./cli.ts";
import { temporaryFolder, writeFiles } from "./home.ts";
import { openTraces, startTask, taskWhen } from "./place.ts";
import { type Answer, type Fields, ModernClient, SessionClient, takesAll } from "./wire.ts";

/** Who sees a task of a signed-in user, by every method of MCP, with real credentials of every kind. */

/** An authorization server that signs what it is told to. */
export interface TestIssuer {
  readonly issuer: string;
  token(claims: Fields): Promise<string>;
}

export interface WhoSeesTasksOptions {
  /** The address of an empty store that is outside of every home. */
  readonly openStore: () => Promise<string>;
  readonly startIssuer: () => Promise<TestIssuer>;
}

const commands = path.resolve(import.meta.dirname, "../fixtures/rules/commands");

/** `owner`: sees it and may change it. `reader`: sees it. `other`: a caller to whom the task is unknown. */
type Expected = "owner" | "reader" | "other" | 401 | 403;

interface Person {
  readonly url: string;
  readonly token: string | undefined;
  readonly expected: Expected;
}

async function openServer(home: string, store: string, config: object) {
  const cwd = writeFiles(temporaryFolder(), {
    "meanwhile.config.json": JSON.stringify({ commands: [commands], ...config }),
  });
  const env = { MEANWHILE_HOME: home, MEANWHILE_STORE: store };
  const server = await startHttpHere(["--no-bundled"], { cwd, env });
  const keys = async (...words: string[]) => {
    const { code, stdout, stderr } = await runCli(["keys", ...words], { cwd, env });
    if (code !== 0) throw new Error(stderr);
    return stdout.trim();
  };
  return { ...server, keys };
}

const secondsFromNow = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;

/** Two projects of one home and one project of two homes on one store, and everybody who may knock. */
async function openPlaces({ openStore, startIssuer }: WhoSeesTasksOptions) {
  const store = await openStore();
  const [first, second, apart] = [await startIssuer(), await startIssuer(), await startIssuer()];
  const auth = { issuers: [first, second].map(({ issuer }) => ({ issuer })) };
  const separate = { issuer: apart.issuer, separateClients: true };
  const [home, otherHome] = [temporaryFolder(), temporaryFolder()];
  const here = await openServer(home, store, { project: "reports", auth: { issuers: [...auth.issuers, separate] } });
  const elsewhere = await openServer(home, store, { project: "mail", auth });
  const atOtherHome = await openServer(otherHome, store, { project: "reports", auth });
  const { url } = here;
  const ada = (claims: Fields = {}) =>
    first.token({ aud: url, sub: "ada", client_id: "editor", scope: "meanwhile:call", ...claims });
  const foreignKey = await elsewhere.keys("add", "ci");
  const revokedKey = await here.keys("add", "old");
  await here.keys("revoke", "old");
  const person = (expected: Expected, token: string | undefined, at = url): Person => ({ url: at, token, expected });
  const adminScopes = { scope: "meanwhile:admin meanwhile:call" };
  const people: Record<string, Person> = {
    "the owner from another client": person("owner", await ada({ client_id: "terminal" })),
    "the owner with the right to read": person("reader", await ada({ scope: "meanwhile:read" })),
    "the owner without a scope": person(403, await ada({ scope: "" })),
    "the owner with an expired token": person(401, await ada({ exp: secondsFromNow(-3_600) })),
    "the owner with a token for another server": person(401, await ada({ aud: elsewhere.url })),
    "another subject of the same client": person("other", await ada({ sub: "bob" })),
    "a client of the owner's name": person("other", await ada({ sub: undefined, client_id: "ada" })),
    "the same subject of another issuer": person(
      "other",
      await second.token({ aud: url, sub: "ada", client_id: "editor", scope: "meanwhile:call" }),
    ),
    "the owner's name at an issuer that separates clients": person(
      "other",
      await apart.token({ aud: url, sub: "ada", client_id: "editor", scope: "meanwhile:call" }),
    ),
    "an API key": person("other", await here.keys("add", "ci")),
    "a revoked API key": person(401, revokedKey),
    "an API key of another project": person(401, foreignKey),
    "an API key of another project, at its server": person("other", foreignKey, elsewhere.url),
    "an admin": person("other", await ada({ sub: "carol", ...adminScopes })),
    "an admin by API key": person("other", await here.keys("add", "boss", "--scopes", "meanwhile:admin")),
    "the owner at the server of another project": person("other", await ada({ aud: elsewhere.url }), elsewhere.url),
    "the local user": person("other", here.token()),
    "the local user of another home": person("other", atOtherHome.token(), atOtherHome.url),
    "a caller without a credential": person(401, undefined),
  };
  return { url, people, owner: person("owner", await ada()), apart };
}

const headersOf = ({ token }: Person): Record<string, string> =>
  token === undefined ? {} : { authorization: `Bearer ${token}` };
const modernOf = (person: Person) =>
  new ModernClient(person.url, { headers: headersOf(person), capabilities: takesAll });
/** In a session, unless the server refuses to begin one. */
async function legacyOf(person: Person): Promise<SessionClient> {
  const options = { headers: headersOf(person), capabilities: { elicitation: {} } };
  return typeof person.expected === "number"
    ? new SessionClient(person.url, options)
    : await SessionClient.begin(person.url, options);
}

interface Way {
  readonly era: "legacy" | "modern";
  readonly method: string;
  readonly params: (taskId: string) => Fields;
  /** It changes the task. */
  readonly changes?: boolean;
}

const answers = { q1: { action: "accept", content: { text: "yes" } } };
const byId =
  (more: Fields = {}) =>
  (taskId: string) => ({ taskId, ...more });
const followUp =
  (name: string, more: Fields = {}) =>
  (taskId: string) => ({ name, arguments: { job_id: taskId, ...more } });
const tools = "tools/call";

/** Every way to a task by its ID, in both task dialects and by the follow-up tools. */
const ways: readonly Way[] = [
  { era: "legacy", method: "tasks/get", params: byId() },
  { era: "modern", method: "tasks/get", params: byId() },
  { era: "legacy", method: tools, params: followUp("task_status") },
  { era: "legacy", method: tools, params: followUp("task_result", { wait_seconds: 0 }) },
  { era: "modern", method: tools, params: followUp("task_result", { wait_seconds: 0 }) },
  { era: "legacy", method: "tasks/cancel", params: byId(), changes: true },
  { era: "modern", method: "tasks/cancel", params: byId(), changes: true },
  { era: "modern", method: "tasks/update", params: byId({ inputResponses: answers }), changes: true },
  {
    era: "legacy",
    method: tools,
    params: followUp("task_answer", { answers: { q1: { text: "yes" } } }),
    changes: true,
  },
  { era: "legacy", method: tools, params: followUp("task_cancel"), changes: true },
  { era: "modern", method: tools, params: followUp("task_result", { cancel: true }), changes: true },
  { era: "modern", method: tools, params: followUp("task_result", { answer: { q1: { text: "yes" } } }), changes: true },
];
const nameOf = ({ era, method, params }: Way) => `${method} ${JSON.stringify(params("ID"))} (${era})`;

/** Ways that name no task: nothing of another caller's may be in the answer. */
const lists: readonly Pick<Way, "era" | "method" | "params">[] = [
  { era: "legacy", method: "tasks/list", params: () => ({}) },
  { era: "legacy", method: tools, params: () => ({ name: "task_list", arguments: {} }) },
  { era: "modern", method: tools, params: () => ({ name: "task_result", arguments: {} }) },
  { era: "legacy", method: "tools/list", params: () => ({}) },
  { era: "modern", method: "tools/list", params: () => ({}) },
  { era: "modern", method: "prompts/list", params: () => ({}) },
  { era: "modern", method: "resources/list", params: () => ({}) },
  { era: "modern", method: "resources/read", params: () => ({ uri: "meanwhile://stats" }) },
  {
    era: "modern",
    method: "completion/complete",
    params: () => ({ ref: { type: "ref/tool", name: "task_result" }, argument: { name: "job_id", value: "" } }),
  },
];

/** A task that asks one thing and waits for the answer. */
async function startAsking(person: Person): Promise<string> {
  const client = modernOf(person);
  const { taskId } = await startTask(client, "ask_many", { file: openTraces().file, again: 1 });
  await taskWhen(client, taskId, ({ inputRequests }) => Object.keys(inputRequests ?? {}).length === 1);
  return taskId;
}

/** A credential that is not accepted is refused before the method is read, so a few methods are enough. */
const waysFor = <T>({ expected }: Person, all: readonly T[]): readonly T[] =>
  expected === 401 ? all.slice(0, 3) : all;

const isServed = ({ error, result }: Answer) => error === undefined && result?.isError !== true;

/** An answer without what is different by chance. */
function withoutChance({ status, headers, text }: Answer, id: string): string {
  const kept = [...headers].filter(([name]) => !["date", "mcp-session-id", "content-length"].includes(name));
  const body = text
    .replaceAll(id, "ID")
    .replaceAll(/^id: .*$/gm, "id: EVENT")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME");
  return JSON.stringify([status, kept, body]);
}

export function testWhoSeesTasks(options: WhoSeesTasksOptions): void {
  describe("a task of a signed-in user", () => {
    test("is seen by its owner alone, by every method", async () => {
      const { people, owner } = await openPlaces(options);
      const taskId = await startAsking(owner);
      const { ttlMs: _then, ...before } = await taskWhen(modernOf(owner), taskId, () => true);
      for (const [who, person] of Object.entries(people)) {
        if (person.expected === "owner") continue;
        const clients = { modern: modernOf(person), legacy: await legacyOf(person) };
        for (const way of waysFor(person, ways)) {
          const what = `${who}: ${nameOf(way)}`;
          const ask = (id: string) => clients[way.era].request(way.method, way.params(id), { id: 1_000 });
          const answer = await ask(taskId);
          if (person.expected === "reader") {
            if (way.changes === true) expect(answer.status, what).toBe(403);
            else expect(isServed(answer), `${what}: ${answer.text}`).toBe(true);
          } else if (typeof person.expected === "number") {
            expect(answer.status, `${what}: ${answer.text}`).toBe(person.expected);
            expect(answer.text, what).not.toContain("There is no such task");
          } else {
            expect(isServed(answer), `${what}: ${answer.text}`).toBe(false);
            const unknown = randomUUID();
            expect(withoutChance(answer, taskId), what).toBe(withoutChance(await ask(unknown), unknown));
          }
        }
        const { ttlMs: _now, ...now } = await taskWhen(modernOf(owner), taskId, () => true);
        expect(now, `after ${who}`).toEqual(before);
      }
    });

    test("is in the lists of its owner alone", async () => {
      const { people, owner } = await openPlaces(options);
      const taskId = await startAsking(owner);
      for (const [who, person] of Object.entries(people)) {
        const clients = { modern: modernOf(person), legacy: await legacyOf(person) };
        const isOwners = person.expected === "owner" || person.expected === "reader";
        const found: string[] = [];
        for (const { era, method, params } of waysFor(person, lists)) {
          const what = `${who}: ${method} ${JSON.stringify(params(""))}`;
          const answer = await clients[era].request(method, params(""));
          if (typeof person.expected === "number") expect(answer.status, what).toBe(person.expected);
          if (answer.text.includes(taskId)) found.push(method);
        }
        expect(found.length > 0, `${who}: ${found.join(", ")}`).toBe(isOwners);
        if (typeof person.expected === "number") continue;
        const { acknowledged, stream } = await clients.modern.listen([taskId]);
        expect(acknowledged, who).toEqual({ taskIds: isOwners ? [taskId] : [] });
        if (!isOwners) expect(stream.text, who).not.toContain(taskId);
      }
    });

    test("is not reached by the owner's session or its event stream", async () => {
      const { people, owner } = await openPlaces(options);
      const session = await legacyOf(owner);
      const taskId = await startAsking(owner);
      for (const [who, person] of Object.entries(people)) {
        if (person.expected === "owner" || person.expected === "reader") continue;
        const expected = typeof person.expected === "number" ? person.expected : 404;
        const thief = new SessionClient(person.url, { headers: headersOf(person) });
        thief.sessionId = session.sessionId;
        expect((await thief.request("tasks/get", { taskId })).status, who).toBe(expected);
        const resumed = await fetch(person.url, {
          headers: {
            ...{ accept: "text/event-stream", "mcp-session-id": session.sessionId ?? "", "last-event-id": "1" },
            ...headersOf(person),
          },
        });
        await resumed.body?.cancel();
        expect(resumed.status, who).toBe(expected);
      }
      expect(isServed(await session.request("tasks/get", { taskId }))).toBe(true);
    });

    test("is the owner's from another client too, and may be changed from there", async () => {
      const { people, owner } = await openPlaces(options);
      const other = people["the owner from another client"] as Person;
      for (const way of ways) {
        const taskId = await startAsking(owner);
        const client = way.era === "modern" ? modernOf(other) : await legacyOf(other);
        const answer = await client.request(way.method, way.params(taskId));
        expect(isServed(answer), `${nameOf(way)}: ${answer.text}`).toBe(true);
      }
    });

    test("is the client's alone where the issuer separates clients", async () => {
      const { url, apart } = await openPlaces(options);
      const as = async (client_id: string): Promise<Person> => ({
        url,
        expected: "other",
        token: await apart.token({ aud: url, sub: "ada", client_id, scope: "meanwhile:call" }),
      });
      const [editor, terminal] = [await as("editor"), await as("terminal")];
      const taskId = await startAsking(editor);
      expect(isServed(await modernOf(editor).request("tasks/get", { taskId }))).toBe(true);
      expect(isServed(await modernOf(terminal).request("tasks/get", { taskId }))).toBe(false);
      expect((await (await legacyOf(terminal)).request("tasks/list", {})).text).not.toContain(taskId);
    });

    test("is made anew for an equal call, or one with the same idempotency key, of another caller", async () => {
      const { people, owner } = await openPlaces(options);
      const input = { file: openTraces().file, again: 1 };
      for (const _meta of [{}, { "meanwhile/idempotencyKey": "the same" }]) {
        const own = (await startTask(modernOf(owner), "ask_many", input, { _meta })).taskId;
        for (const [who, person] of Object.entries(people)) {
          if (person.expected !== "other" && person.expected !== "owner") continue;
          const { taskId } = await startTask(modernOf(person), "ask_many", input, { _meta });
          expect(taskId === own, who).toBe(person.expected === "owner");
        }
      }
    });
  });
}
