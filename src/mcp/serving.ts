import { type AccessSettings, ToolAccess } from "../auth/access.ts";
import type { Authentication } from "../auth/authentication.ts";
import { Gate } from "../auth/gate.ts";
import type { Clock } from "../clock.ts";
import type { Catalog } from "../command/catalog.ts";
import type { Command } from "../command/command.ts";
import { filterCatalog } from "../command/filtered-catalog.ts";
import type { GivenUpCall, LearnedLimits } from "../host/learned-limits.ts";
import { type HostOverride, isNamed } from "../host/profiles.ts";
import type { Logger } from "../log.ts";
import type { Calls } from "../task/calls.ts";
import type { DeferralRules } from "../task/deferral.ts";
import type { Engine } from "../task/engine.ts";
import type { CommandStats } from "../task/history.ts";
import type { Limits } from "../task/limits.ts";
import type { SharedState } from "../task/shared-state.ts";
import type { Json } from "../wire/json.ts";
import { createTools, type ToolsOptions, type ToolVisibility } from "./command-tools.ts";
import { createCompletions } from "./completions.ts";
import type { Conversation } from "./conversation.ts";
import { followUpsByName } from "./generation/follow-up-names.ts";
import { FollowUpTools } from "./generation/plain.ts";
import { Tasks2025 } from "./generation/tasks-2025.ts";
import { createTasks2026 } from "./generation/tasks-2026.ts";
import { GivenUpCalls } from "./given-up-calls.ts";
import type { GuestCompany } from "./guest-view.ts";
import { hostNameOf } from "./host-limit.ts";
import { ListedShapes } from "./listed-shapes.ts";
import { Listening, type ListName } from "./listening.ts";
import { ResultRoom } from "./outbound.ts";
import { ParkedCalls } from "./parked-calls.ts";
import type { CommandTools, ServedIdentity } from "./parts.ts";
import { PollLimit } from "./poll-limit.ts";
import { createPrompts } from "./prompts.ts";
import type { ClientConnection, ClientRequest } from "./request.ts";
import { RequestStates } from "./request-states.ts";
import { createResources } from "./resources.ts";
import { createRouter, type Router, type RouterParts } from "./router.ts";
import { TaskSubscriptions } from "./subscriptions.ts";

export interface ServingOptions {
  readonly facts: ServedIdentity;
  /** What is served: servers of another project have nothing to do with its sessions. */
  readonly project: string;
  readonly catalog: Catalog;
  readonly auth: AccessSettings;
  /** The tasks, opened when they are first needed. */
  readonly openCalls: () => Calls | Promise<Calls>;
  readonly readStats: () => Promise<readonly CommandStats[]>;
  /** What all servers on one store have in common, opened when it is first needed. */
  readonly openShared: () => Promise<SharedState>;
  readonly guests: GuestCompany | undefined;
  /** It stands in front of a guest: what that has not, it has not either. */
  readonly isOnlyFront: boolean;
  /** It serves nothing but its upstreams. */
  readonly isWrap: boolean;
  readonly hasPrompts: boolean;
  readonly hasFollowUpTools: boolean;
  readonly toolPrefix: string;
  readonly keepInlineMs: number;
  readonly limits: Limits;
  readonly deferral: DeferralRules;
  readonly errorsAsCompleted: boolean;
  readonly hosts: Readonly<Record<string, HostOverride>>;
  readonly hostName: string | undefined;
  /** Absent where nothing is learned about hosts. */
  readonly learnedLimits?: LearnedLimits | undefined;
  readonly isDebug: boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The client that gave up a call. */
type LearnedFrom = Pick<ClientRequest, "caller" | "client" | "door" | "connection">;

/** What all conversations of a server have in common. */
export interface Served {
  readonly gate: Gate;
  routerFor(authentication: Authentication): Router;
  createTasks2025(connection: ClientConnection): Tasks2025;
  /** Where an author has registered things by hand. */
  readonly guests: GuestCompany | undefined;
  readonly project: string;
  readonly openShared: () => Promise<SharedState>;
  readonly clock: Clock;
  readonly log: Logger;
  /** A client cancelled a tool call that had no answer. */
  noteCancelled(client: LearnedFrom, call: GivenUpCall): void;
  /** A client closed an HTTP stream: that of this call, or one on which no call waits. */
  noteClosedStream(client: LearnedFrom, call: GivenUpCall | undefined): void;
}

/** What is told to clients, put together; doors are opened on it. */
export interface Serving {
  readonly served: Served;
  readonly listening: Listening;
  /** Calls that were sent back with a question. */
  readonly parked: ParkedCalls;
  /** Those over pipes that are going on. */
  readonly conversations: Set<Conversation>;
  /** The schema of a tool's arguments, as its caller sees it; undefined while the file of the tool is not loaded. */
  schemaOf(tool: string, authentication: Authentication): Json | undefined;
  /** The commands that a caller is shown, see `filterCatalog`. */
  catalogFor(authentication: Authentication): Catalog;
  /** Hears which lists have changed, beside those who were told already. */
  onListsChanged(listener: (lists: readonly ListName[]) => void): void;
  /** Hears that the store is about to be closed: what others have to know of us is to be written now. */
  onLeaving(listener: () => Promise<void>): void;
  leaveShared(): Promise<void>;
  close(): void;
}

export function createServing(options: ServingOptions): Serving {
  const { catalog, clock, log, isDebug, guests, hasPrompts } = options;
  const openEngine = async () => (await options.openCalls()).engine;
  const find = (name: string): Command | undefined => catalog.get(name)?.command;
  const results = new ResultRoom(clock, options.limits.resultMb * 1024 * 1024);
  const common = { openEngine, find, clock, log, isDebug, polls: new PollLimit(clock), results };
  const shapes = new ListedShapes();
  const { toolPrefix, isWrap } = options;
  const plain = options.hasFollowUpTools ? new FollowUpTools({ ...common, toolPrefix, isWrap, shapes }) : undefined;
  const parked = new ParkedCalls(options);
  const states = new RequestStates(clock, options.project, options.openShared);
  const shared = { ...options, results, parked, plain, shapes, states, openEngine };
  const lists: readonly ListName[] = hasPrompts ? ["tools", "prompts"] : ["tools"];
  const listening = new Listening(new TaskSubscriptions(common), lists);
  const listen = (params: Json, request: ClientRequest) => listening.answer(params, request);
  const modernMethods = { ...createTasks2026(common), "subscriptions/listen": listen };
  const { gate, access } = openGate(options);
  const partsFor = createPartsByCaller({ ...shared, modernMethods, access });
  const conversations = new Set<Conversation>();
  const listeners = new Set<(changed: readonly ListName[]) => void>();
  const leavers = new Set<() => Promise<void>>();
  const givenUp = learnFromGivenUp(options);
  const stopListening = catalog.onChange(() => {
    listening.listsChanged();
    for (const conversation of conversations) conversation.sendListsChanged(lists);
    for (const listener of listeners) listener(lists);
  });
  return {
    served: {
      gate,
      routerFor: (authentication) => partsFor(authentication).router,
      createTasks2025: (connection) =>
        new Tasks2025(connection, { ...common, errorsAsCompleted: options.errorsAsCompleted }),
      guests,
      project: options.project,
      openShared: options.openShared,
      clock,
      log,
      noteCancelled: givenUp.noteCancelled,
      noteClosedStream: givenUp.noteClosedStream,
    },
    listening,
    parked,
    conversations,
    schemaOf(tool, authentication) {
      const { tools } = partsFor(authentication);
      return tools.inputSchema(tool) ?? (tools.isHidden(tool) ? undefined : guests?.schemaOf(tool));
    },
    catalogFor: (authentication) => partsFor(authentication).catalog,
    onListsChanged: (listener) => void listeners.add(listener),
    onLeaving: (listener) => void leavers.add(listener),
    leaveShared: async () => void (await Promise.all([...leavers].map((leave) => leave()))),
    close() {
      stopListening();
      givenUp.close();
      guests?.close();
    },
  };
}

/** What decides about the requests of callers. */
function openGate({ auth, catalog, hasFollowUpTools, toolPrefix }: ServingOptions) {
  const access = new ToolAccess(auth);
  const followUps = followUpsByName({ followUpTools: hasFollowUpTools, toolPrefix });
  return { access, gate: new Gate({ access, catalog, followUps }) };
}

/** Learns the limits of hosts from the calls that their clients gave up; does nothing where nothing is to be learned. */
function learnFromGivenUp(
  options: ServingOptions,
): Pick<Served, "noteCancelled" | "noteClosedStream"> & { close(): void } {
  const { learnedLimits, clock } = options;
  const givenUp = learnedLimits && new GivenUpCalls(clock, learnedLimits);
  return {
    noteCancelled(client, call) {
      const host = learnedName(client, options);
      if (host !== undefined) givenUp?.noteCancelled(host, client.door, call);
    },
    noteClosedStream(client, call) {
      const host = learnedName(client, options);
      if (host !== undefined) givenUp?.noteClosedStream(host, call);
    },
    close: () => givenUp?.close(),
  };
}

/** The name of the host that something is learned about: that of a client of the local user which has a name of its own. */
function learnedName(client: LearnedFrom, options: ServingOptions): string | undefined {
  const name = hostNameOf(options, client);
  return client.caller.kind === "local" && isNamed(name) ? name.trim() : undefined;
}

interface PartsOptions
  extends Omit<ToolsOptions, "visibility">,
    Pick<ServingOptions, "hasPrompts" | "isOnlyFront">,
    Pick<RouterParts, "facts" | "modernMethods"> {
  readonly openEngine: () => Promise<Engine>;
  readonly access: ToolAccess;
}

interface Parts {
  readonly catalog: Catalog;
  readonly tools: CommandTools;
  readonly router: Router;
}

/** Parts are kept for this many sets of rights. Most servers have fewer. */
const maxParts = 50;

/** The parts for a caller. Callers with equal access share them. */
function createPartsByCaller(options: PartsOptions): (authentication: Authentication) => Parts {
  const { access } = options;
  const whole = createParts(options, undefined);
  const byRights = new Map<string, Parts>();
  /** A credential that is cached comes with request after request. Not the parts, which would stay as long as it does. */
  const keys = new WeakMap<Authentication, string>();
  return (authentication) => {
    const rights = keys.has(authentication) ? undefined : access.reduce(authentication);
    const key = rights === undefined ? keys.get(authentication) : JSON.stringify(rights);
    if (key === undefined) return whole;
    keys.set(authentication, key);
    const parts = byRights.get(key) ?? createParts(options, rights ?? access.reduce(authentication));
    // Used last, so the last to go.
    byRights.delete(key);
    byRights.set(key, parts);
    for (const oldest of byRights.keys()) {
      if (byRights.size <= maxParts) break;
      byRights.delete(oldest);
    }
    return parts;
  };
}

/** What a caller with these rights is listed, calls, completes or is suggested; undefined rights for everything. */
function createParts(options: PartsOptions, rights: Authentication | undefined): Parts {
  const { readStats, hasPrompts, isOnlyFront, openEngine, facts, modernMethods, access } = options;
  const catalog =
    rights === undefined
      ? options.catalog
      : filterCatalog(options.catalog, {
          isKnown: (tool) => access.isKnown(rights, tool),
          isListed: (tool) => access.isListed(rights, tool),
        });
  const readKnown =
    rights === undefined
      ? readStats
      : async () => (await readStats()).filter(({ command }) => catalog.get(command) !== undefined);
  const visibility = rights === undefined ? undefined : toVisibility(options, rights);
  const tools = createTools({ ...options, catalog, readStats: readKnown, visibility });
  const router = createRouter({
    tools,
    resources: isOnlyFront ? undefined : createResources(readKnown),
    prompts: hasPrompts ? createPrompts(catalog) : undefined,
    completions: createCompletions({ catalog, hasPrompts, openEngine }),
    facts,
    modernMethods,
  });
  return { catalog, tools, router };
}

function toVisibility({ catalog, access }: PartsOptions, rights: Authentication): ToolVisibility {
  const toTool = (toolName: string) => {
    const entry = catalog.get(toolName);
    return entry?.toolName === toolName ? entry : { toolName };
  };
  return {
    isHidden: (toolName) => !access.isKnown(rights, toTool(toolName)),
    isListed: (toolName) => access.isListed(rights, toTool(toolName)),
    needsListedNames: access.needsListedNames(rights),
  };
}
