import { mkdirSync } from "node:fs";
import path from "node:path";
import { type AppCaller, callerIn } from "../auth/app-caller.ts";
import { type Clock, systemClock } from "../clock.ts";
import { mergeSources } from "../command/catalog.ts";
import { openLiveFolders } from "../command/folder-source.ts";
import { takeStdout } from "../command/process-guard.ts";
import type { CommandSource } from "../command/source.ts";
import { messageOf } from "../errors.ts";
import { createFirstNumber } from "../ids.ts";
import { type Logger, openLog } from "../log.ts";
import { Conversation } from "../mcp/conversation.ts";
import type { Guests } from "../mcp/guests.ts";
import type { ServerIdentity } from "../mcp/parts.ts";
import { isBundledFile } from "../paths.ts";
import { becomeApp } from "../program/program.ts";
import { createRuntime, type RuntimeCore } from "../runtime/runtime.ts";
import { type Streams, serveStreams } from "../serve.ts";
import { isStoreFile, memoryStore, refuseShared } from "../store/open.ts";
import { createHttpMount, type HttpMount } from "../transport/http/mount.ts";
import { toHomelessSettings } from "./homeless-settings.ts";
import type { CheckedOptions } from "./server-options.ts";
import { type MessageTransport, TransportWay } from "./transport-way.ts";

/** What a server inside a program has beside its own commands: what somebody else's server brings along. */
export interface EmbeddedParts {
  readonly sources?: readonly CommandSource[];
  readonly guests?: Guests | undefined;
  /** Counts where the options do not say it. */
  readonly facts?: Partial<ServerIdentity>;
  /** All but the tools is that server's alone. */
  readonly isOnlyFront?: boolean;
}

export type OpenParts = (given: { readonly log: Logger; readonly clock: Clock }) => Promise<EmbeddedParts>;

/** A server inside a program, once it is open. */
export class OpenServer {
  readonly core: RuntimeCore;
  readonly mount: HttpMount;
  readonly #graceMs: number;
  readonly #leaving = new AbortController();
  readonly #ways = new Set<TransportWay>();
  #onClose: (() => void) | undefined;

  constructor(core: RuntimeCore, mount: HttpMount, graceMs: number) {
    this.core = core;
    this.mount = mount;
    this.#graceMs = graceMs;
  }

  /** One connection over streams; resolves when the client has closed it. */
  async serve(streams: Pick<Streams, "input" | "output" | "write" | "folder">): Promise<void> {
    await serveStreams(this.core, { ...streams, leaving: this.#leaving.signal });
  }

  async connect(transport: MessageTransport, caller: AppCaller | undefined): Promise<void> {
    const { serving, log } = this.core;
    const way = new TransportWay(transport, log);
    const conversation = new Conversation(serving.served, {
      authentication: { caller: callerIn(this.core, caller) },
      door: "stdio",
      way,
      firstId: createFirstNumber(),
    });
    way.onMessage = (message) => conversation.receive(message);
    way.onClose = () => {
      conversation.close();
      serving.conversations.delete(conversation);
      this.#ways.delete(way);
    };
    serving.conversations.add(conversation);
    this.#ways.add(way);
    await way.start();
  }

  /** As a server stops that was told to: calls are handed out, and whoever still waits is told. */
  async close(): Promise<void> {
    this.#leaving.abort();
    await this.core.close(this.#graceMs);
    await this.mount.close();
    for (const conversation of this.core.serving.conversations) conversation.leave();
    await Promise.all([...this.#ways].map((way) => way.close()));
    this.#onClose?.();
  }

  onClose(listener: () => void): void {
    this.#onClose = listener;
  }
}

/** Opens what serves the commands, and begins to work on what an earlier process has left in the store. */
export async function openEmbedded(options: CheckedOptions, openParts: OpenParts | undefined): Promise<OpenServer> {
  const endApp = becomeApp();
  const log = openServerLog(options);
  try {
    const server = await open(options, openParts, log);
    server.onClose(endApp);
    return server;
  } catch (error) {
    endApp();
    log.error(`the server could not be opened: ${messageOf(error)}`);
    throw error;
  }
}

async function open(options: CheckedOptions, openParts: OpenParts | undefined, log: Logger): Promise<OpenServer> {
  const clock = systemClock;
  const { sources = [], guests, facts = {}, isOnlyFront = false } = (await openParts?.({ log, clock })) ?? {};
  const { name = facts.name ?? "", version = facts.version ?? "", instructions = facts.instructions } = options;
  const { about } = facts;
  const identity = { name, version, instructions, ...(about !== undefined && { about }) };
  const settings = toHomelessSettings(options, identity, process.cwd());
  const { toolPrefix, store } = settings;
  if (isStoreFile(store)) prepareStore(store);
  const { folders, source } = options;
  const files =
    folders.length === 0 ? [] : [await openLiveFolders({ folders, toolPrefix, log, clock, isBundled: isBundledFile })];
  const catalog = mergeSources([...files, ...(source === undefined ? [] : [source]), ...sources], { log });
  const core = createRuntime(settings, { catalog, guests, isOnlyFront, clock, log });
  if (store !== memoryStore)
    core.tasks.start().catch((error: unknown) => log.error(`tasks are not worked on: ${messageOf(error)}`));
  return new OpenServer(core, openMount(core, options), settings.graceSeconds * 1000);
}

/** The folder of a store is its user's, and so is what is kept in it. */
function prepareStore(store: string): void {
  mkdirSync(path.dirname(store), { recursive: true, mode: 0o700 });
  refuseShared(store, "set `store` to a file in a folder of your own");
}

function openMount(core: RuntimeCore, { identify, publicUrl }: CheckedOptions): HttpMount {
  const { serving, clock, log } = core;
  return createHttpMount({ serving, callers: core, identify, publicUrl, clock, log });
}

function openServerLog({ log, logLevel = "warn" }: CheckedOptions): Logger {
  if (log === undefined) {
    const { stderr } = process;
    return openLog({ level: logLevel, isTerminal: stderr.isTTY === true, write: (text) => void stderr.write(text) });
  }
  const write = (text: string) => {
    try {
      log(text.trimEnd());
    } catch {
      // What an app does with its log must not end what is logged.
    }
  };
  return openLog({ level: logLevel, isTerminal: false, write });
}

let stdout: ReturnType<typeof takeStdout> | undefined;

/** This process's own stdin and stdout. From now on whatever else would write to stdout goes to stderr. */
export function ownStreams(): Pick<Streams, "input" | "output" | "write" | "folder"> {
  if (stdout !== undefined) throw new Error("This process's stdin and stdout are served already; there is one client.");
  stdout = takeStdout(process);
  return { input: process.stdin, output: stdout.stream, write: stdout.write, folder: process.cwd() };
}
