import type { Caller } from "../command/caller.ts";
import { ProtocolError, RequestError, RpcCode, RuntimeError, requestErrors } from "../errors.ts";
import { excerptOf, isObject, type Json, listOf } from "../wire/json.ts";
import { WrittenResult } from "../wire/message.ts";
import { metaKeys } from "../wire/request-envelope.ts";
import {
  hasCompletionsCapability,
  knowsTaskSupport,
  legacyRevision,
  legacyRevisions,
  modernRevision,
  tasksExtension,
} from "../wire/revisions.ts";
import { tasksCapability } from "./generation/tasks-2025.ts";
import type { GuestView } from "./guest-view.ts";
import { badParams, textParam } from "./params.ts";
import type { ServedIdentity, ServerParts, ToolCall } from "./parts.ts";
import type { ClientRequest, Handler, Result } from "./request.ts";

/**
 * Which method is answered by what, in either era. What differs for one connection it brings itself: its handshake, and
 * its tasks of 2025-11-25.
 */
export interface Router {
  readonly legacy: ReadonlyMap<string, Handler>;
  readonly modern: ReadonlyMap<string, Handler>;
  /** What a client of this revision is told at its handshake. */
  hello(revision: string, caller: Caller): Json;
  /** A result as a client of this era is sent it. */
  finish(method: string, result: Result, isModern: boolean): Result | WrittenResult;
}

export interface RouterParts extends ServerParts {
  readonly facts: ServedIdentity;
  /** Of 2026-07-28 alone: its tasks, and what can be listened to. */
  readonly modernMethods: Readonly<Record<string, Handler>>;
}

export const methodNotFound = new ProtocolError(RpcCode.Method, "Method not found");

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
  const { facts, prompts, resources } = parts;
  // Who stands in front of somebody else's server learns from that server who it is.
  const serverInfo = () => ({ name: facts.name, version: facts.version, ...facts.about });
  const instructionsFor = (caller: Caller) => {
    const instructions = typeof facts.instructions === "function" ? facts.instructions(caller) : facts.instructions;
    return instructions === undefined ? {} : { instructions };
  };
  const declared = {
    tools: { listChanged: true },
    ...(resources !== undefined && { resources: {}, logging: {} }),
    ...(prompts !== undefined && { prompts: { listChanged: true } }),
  };
  const shared = Object.entries(methodsOf(parts));
  const dress = (method: string, result: Result): Result => ({
    resultType: "complete",
    ...(cacheable.has(method) && { ttlMs: 0, cacheScope: "private" }),
    ...result,
    _meta: { ...(result._meta as object | undefined), [metaKeys.serverInfo]: serverInfo() },
  });
  const written = new WeakMap<object, { legacy?: WrittenResult; modern?: WrittenResult }>();
  // In front of somebody else's server alone, what is completed is that server's.
  const completing = resources === undefined ? {} : { completions: {} };
  const capabilities = { ...declared, ...completing, extensions: { [tasksExtension]: {} } };
  const discover: Handler = async (_params, request) => ({
    supportedVersions: [modernRevision],
    capabilities: (await request.guest())?.mergeCapabilities(capabilities) ?? capabilities,
    ...instructionsFor(request.caller),
  });
  return {
    legacy: new Map([...shared, ["ping", () => ({})]]),
    modern: new Map([...shared, ...Object.entries(parts.modernMethods), ["server/discover", discover]]),
    hello: (revision, caller) => ({
      protocolVersion: revision,
      capabilities: {
        ...declared,
        ...(hasCompletionsCapability(revision) && completing),
        ...(knowsTaskSupport(revision) && { tasks: tasksCapability(caller) }),
      },
      serverInfo: serverInfo(),
      ...instructionsFor(caller),
    }),
    finish(method, result, isModern) {
      // The tools of a thousand commands are written once for each revision of the catalog.
      const texts = method === "tools/list" ? written.get(result.tools as object) : undefined;
      const era = isModern ? "modern" : "legacy";
      if (texts?.[era] !== undefined) return texts[era];
      const finished = isModern ? dress(method, result) : result;
      if (method !== "tools/list" || Object.keys(result).length > 1) return finished;
      const text = new WrittenResult(finished);
      written.set(result.tools as object, { ...texts, [era]: text });
      return text;
    },
  };
}

/** The revision that a handshake ends in: what the client asked for, or the newest that has one. */
export function agreeOn(asked: string): string {
  return legacyRevisions.includes(asked) ? asked : legacyRevision;
}

/**
 * The methods of both eras. What is the server's own comes first, then what the author has registered by hand; but a
 * prompt of the author wins over a command of its name.
 */
function methodsOf(parts: RouterParts): Readonly<Record<string, Handler>> {
  const { tools } = parts;
  return {
    "tools/list": listed("tools", (request) => tools.list(request), {
      isOnlyFront: isOnlyFront(parts),
      present: (tool, request) => tools.present(tool, request),
    }),
    "tools/call": callHandler(tools),
    "meanwhile/whoami": (_params, request) => ({ caller: describeCaller(request.caller) }),
    ...resourceMethods(parts),
    ...promptMethods(parts),
    "completion/complete": completionHandler(parts),
  };
}

/** True in front of one other server: that server says itself what it does not have. */
function isOnlyFront({ resources }: RouterParts): boolean {
  return resources === undefined;
}

function resourceMethods(parts: RouterParts): Readonly<Record<string, Handler>> {
  const { resources } = parts;
  const terms = { isOnlyFront: isOnlyFront(parts) };
  return {
    "resources/list": listed("resources", ({ caller }) => resources?.list(caller) ?? [], terms),
    "resources/templates/list": listed("resourceTemplates", () => [], terms),
    "resources/read": (params, request) => {
      const uri = textParam(params, "uri");
      const missing = terms.isOnlyFront
        ? undefined
        : badParams(`Resource not found: ${excerptOf(uri)}`, { uri: excerptOf(uri) });
      return resources?.read(uri, request.caller) ?? askGuest("resources/read", params, request, missing);
    },
  };
}

function promptMethods(parts: RouterParts): Readonly<Record<string, Handler>> {
  const { tools, prompts } = parts;
  const missing = (name: string) => {
    if (isOnlyFront(parts)) return undefined;
    return prompts === undefined ? methodNotFound : badParams(`Prompt ${excerptOf(name)} not found`);
  };
  return {
    ...(prompts !== undefined && {
      "prompts/list": listed("prompts", async (request) => {
        const guest = await request.guest();
        return (await prompts.list()).filter(({ name }) => guest?.prompts.has(name) !== true);
      }),
    }),
    "prompts/get": async (params, request) => {
      const name = textParam(params, "name");
      await tools.load(name);
      const isAuthors = (await request.guest())?.prompts.has(name) === true;
      if (!isAuthors && prompts?.has(name) === true)
        return await prompts.get(name, params.arguments === undefined ? {} : params.arguments);
      return await askGuest("prompts/get", params, request, missing(name));
    },
  };
}

function completionHandler(parts: RouterParts): Handler {
  const { tools, completions } = parts;
  return async (params, request) => {
    const guest = await request.guest();
    const name = completions.nameIn(params);
    if (name !== undefined) await tools.load(name);
    const guestSchema = (tool: string) => guest?.tools.get(tool)?.inputSchema as Json | undefined;
    const authors = {
      isPrompt: (prompt: string) => guest?.prompts.has(prompt) === true,
      schemaOf: (tool: string) => tools.inputSchema(tool) ?? (tools.isHidden(tool) ? undefined : guestSchema(tool)),
    };
    const missing = isOnlyFront(parts) ? undefined : badParams("There is nothing of that name to complete.");
    return await (completions.complete(params, request, authors) ??
      askGuest("completion/complete", params, request, missing));
  };
}

/** What a server tells callers of themselves. */
function describeCaller({ kind, id, name, client, scopes, groups }: Caller): Json {
  return { kind, id, ...(name !== undefined && { name }), ...(client !== undefined && { client }), scopes, groups };
}

/** Calls a tool of ours as soon as it is loaded, or the author's. */
function callHandler(tools: RouterParts["tools"]): Handler {
  return (params, request) => {
    const name = textParam(params, "name");
    const call = (guest?: GuestView) => {
      const answer = tools.call(params as unknown as ToolCall, request);
      if (answer !== undefined) return answer;
      const isUnknown =
        guest === undefined || tools.isHidden(name) || (tools.needsListedNames && !guest.tools.has(name));
      if (isUnknown) throw tools.unknown(name);
      return guest.request("tools/call", params, request).catch((error: unknown) => {
        throw error instanceof Error && error.message === `Tool ${excerptOf(name)} not found`
          ? tools.unknown(name)
          : error;
      });
    };
    const loading = tools.load(name);
    if (loading !== undefined) return tools.whenStarted(loading, params as unknown as ToolCall, request, () => call());
    const { openGuest } = request;
    if (openGuest !== undefined) return call(openGuest);
    const opening = request.guest();
    return opening === undefined
      ? call()
      : tools.whenStarted(opening, params as unknown as ToolCall, request, (guest) => call(guest));
  };
}

/**
 * Asks for what is not ours. Where an author has registered nothing that is the error `missing`; undefined: the server
 * behind us is asked all the same.
 */
async function askGuest(
  method: string,
  params: Json,
  request: ClientRequest,
  missing: ProtocolError | undefined,
): Promise<Result> {
  const guest = await request.guest();
  if (guest === undefined) throw missing ?? methodNotFound;
  if (missing !== undefined && !guest.capabilityOf(method)) throw missing;
  return await guest.request(method, params, request);
}

/** A list, ours and the author's. Its pages are the author's: ours come with the first. */
function listed(
  name: string,
  list: (request: ClientRequest) => readonly unknown[] | Promise<readonly unknown[]>,
  {
    present = (item) => item,
    isOnlyFront = false,
  }: {
    readonly present?: (item: Json, request: ClientRequest) => Json | undefined;
    readonly isOnlyFront?: boolean;
  } = {},
): Handler {
  const method = name === "resourceTemplates" ? "resources/templates/list" : `${name}/list`;
  return async (params, request) => {
    if (params.cursor !== undefined) textParam(params, "cursor");
    const guest = await request.guest();
    const own = await list(request);
    if (guest?.capabilityOf(method) !== true)
      return isOnlyFront && guest?.isAlone === true ? await guest.request(method, params, request) : { [name]: own };
    const theirs = await guest.request(method, params, request);
    const items = listOf(theirs[name])
      .filter(isObject)
      .flatMap((item) => present(item, request) ?? []);
    const isFirst = params.cursor === undefined;
    return { ...theirs, [name]: isFirst ? join(name, own, items) : items };
  };
}

function join(name: string, own: readonly unknown[], theirs: readonly unknown[]): readonly unknown[] {
  return name === "prompts" ? [...theirs, ...own] : [...own, ...theirs];
}

/** True for what nobody has thrown on purpose. */
export function isBug(error: unknown): boolean {
  return !(error instanceof ProtocolError || error instanceof RequestError || error instanceof RuntimeError);
}

/** What was thrown, as an answer. */
export function toRpcError(error: unknown): {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
} {
  if (error instanceof RequestError) return { code: requestErrors[error.kind].code, message: error.message };
  if (error instanceof RuntimeError && error.forClients !== undefined)
    return { code: RpcCode.Internal, message: error.forClients };
  if (!(error instanceof ProtocolError)) return { code: RpcCode.Internal, message: "Internal error" };
  return { code: error.code, message: error.message, ...(error.data !== undefined && { data: error.data }) };
}
