import { internalErrorCode, ProtocolError, RequestError, RuntimeError, requestErrors } from "../errors.ts";
import { metaKeys } from "../wire/envelope.ts";
import type { Json } from "../wire/json.ts";
import { hasCompletionsCapability, knowsTaskSupport, legacyRevision, legacyRevisions, modernRevision, tasksExtension } from "../wire/revisions.ts";
import type { Caller } from "./caller.ts";
import { badParams, excerptOf, textParam } from "./params.ts";
import type { Handler, Request, Result } from "./request.ts";
import type { ServerFacts, ServerParts } from "./server.ts";
import { tasksCapability } from "./tasks-2025.ts";

/** Which method is answered by what, in either era. What differs for one connection it brings itself: its handshake, and its tasks of 2025-11-25. */
export interface Router {
  readonly legacy: ReadonlyMap<string, Handler>;
  readonly modern: ReadonlyMap<string, Handler>;
  /** What a client of this revision is told at its handshake. */
  hello(revision: string, caller: Caller): Json;
  /** A result as the modern revision writes it. */
  dress(method: string, result: Result): Result;
}

export interface RouterParts extends Omit<ServerParts, "capabilities"> {
  readonly facts: ServerFacts;
  readonly tasks2026: Readonly<Record<string, Handler>>;
}

/** Results that a client may keep, which say for how long. */
const cacheable: ReadonlySet<string> = new Set([
  "server/discover",
  "tools/list",
  "prompts/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
]);

export function createRouter(parts: RouterParts): Router {
  const { facts, prompts } = parts;
  const serverInfo = { name: facts.name, version: facts.version };
  const instructions = facts.instructions === undefined ? {} : { instructions: facts.instructions };
  const declared = { tools: { listChanged: true }, resources: {}, ...(prompts !== undefined && { prompts: { listChanged: true } }), logging: {} };
  const shared = Object.entries(methodsOf(parts));
  const discover: Handler = async () => ({
    supportedVersions: [modernRevision],
    capabilities: { ...declared, completions: {}, extensions: { [tasksExtension]: {} } },
    ...instructions,
  });
  return {
    legacy: new Map([...shared, ["ping", async () => ({})]]),
    modern: new Map([...shared, ...Object.entries(parts.tasks2026), ["server/discover", discover]]),
    hello: (revision, caller) => ({
      protocolVersion: revision,
      capabilities: {
        ...declared,
        ...(hasCompletionsCapability(revision) && { completions: {} }),
        ...(knowsTaskSupport(revision) && { tasks: tasksCapability(caller) }),
      },
      serverInfo,
      ...instructions,
    }),
    dress: (method, result) => ({
      resultType: "complete",
      ...result,
      ...(cacheable.has(method) && { ttlMs: 0, cacheScope: "private" }),
      _meta: { ...(result._meta as object | undefined), [metaKeys.serverInfo]: serverInfo },
    }),
  };
}

/** The revision that a handshake ends in: what the client asked for, or the newest that has one. */
export function agreeOn(asked: string): string {
  return legacyRevisions.includes(asked) ? asked : legacyRevision;
}

function methodsOf({ tools, resources, prompts, completions }: RouterParts): Readonly<Record<string, Handler>> {
  const listed =
    (list: (request: Request) => Promise<Result>): Handler =>
    (params, request) => {
      if (params.cursor !== undefined) textParam(params, "cursor");
      return list(request);
    };
  return {
    "tools/list": listed(async (request) => {
      const all = await tools.list(request);
      return { tools: request.client.isModern ? all.map(({ execution: _support, ...tool }) => tool) : all };
    }),
    "tools/call": async (params, request) => {
      const name = textParam(params, "name");
      const answer = tools.call({ ...params, name }, request);
      if (answer === undefined) throw tools.unknown(name);
      return await answer;
    },
    "resources/list": listed(async () => ({ resources: resources.list() })),
    "resources/templates/list": listed(async () => ({ resourceTemplates: [] })),
    "resources/read": async (params) => {
      const uri = textParam(params, "uri");
      const answer = resources.read(uri);
      if (answer === undefined) throw badParams(`Resource not found: ${excerptOf(uri)}`, { uri: excerptOf(uri) });
      return await answer;
    },
    ...(prompts !== undefined && {
      "prompts/list": listed(async () => ({ prompts: prompts.list() })),
      "prompts/get": async (params: Json) => {
        const name = textParam(params, "name");
        if (!prompts.has(name)) throw badParams(`Prompt ${excerptOf(name)} not found`);
        return await prompts.get(name, params.arguments === undefined ? {} : params.arguments);
      },
    }),
    "completion/complete": async (params, request) => {
      const none = { isPrompt: () => false, schemaOf: (name: string) => tools.inputSchema(name) };
      const answer = completions.complete(params, request, none);
      if (answer === undefined) throw badParams("There is nothing of that name to complete.");
      return await answer;
    },
  };
}

/** True for what nobody has thrown on purpose. */
export function isBug(error: unknown): boolean {
  return !(error instanceof ProtocolError || error instanceof RequestError || error instanceof RuntimeError);
}

/** What was thrown, as an answer. */
export function toRpcError(error: unknown): { readonly code: number; readonly message: string; readonly data?: unknown } {
  if (error instanceof RequestError) return { code: requestErrors[error.kind].code, message: error.message };
  if (error instanceof RuntimeError && error.forClients !== undefined) return { code: internalErrorCode, message: error.forClients };
  if (!(error instanceof ProtocolError)) return { code: internalErrorCode, message: "Internal error" };
  return { code: error.code, message: error.message, ...(error.data !== undefined && { data: error.data }) };
}
