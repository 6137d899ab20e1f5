import type { Readable, Writable } from "node:stream";
import { createAuthenticator } from "./auth/authenticate.ts";
import { createKeyVerifier } from "./auth/key-verifier.ts";
import { describeResource, type ProtectedResource, type ResourceFacts } from "./auth/metadata.ts";
import { RuntimeError } from "./errors.ts";
import { createFirstNumber } from "./ids.ts";
import { Conversation } from "./mcp/conversation.ts";
import { toWorkingFolder } from "./paths.ts";
import { thisProgram } from "./program/program.ts";
import { findHttpServer, type HttpPlace, type HttpRecord, recordHttpServer } from "./runtime/http-record.ts";
import type { Runtime, RuntimeCore } from "./runtime/runtime.ts";
import { system } from "./system/system.ts";
import type { HttpDoor } from "./transport/http/http-door.ts";
import type { WritePart } from "./transport/outbox.ts";

export interface Streams {
  readonly input: Readable;
  readonly output: Writable;
  readonly write: WritePart;
  /** Who the MCP host is, whatever it calls itself. */
  readonly host?: string | undefined;
  /** The client's working folder, as it said. */
  readonly folder?: unknown;
  /** The client may name its working folder: it is no process of ours, which would have said it. Default: false. */
  readonly namesFolder?: boolean;
  /** The variables that the client's session was started with, where they are not this process's own. */
  readonly environment?: Readonly<Record<string, string>> | undefined;
  /** At the other end is a front of ours, which goes on with another daemon when this one hangs up. */
  readonly isFront?: boolean;
  /** Aborted when the server is about to leave: a connection on which nobody waits for an answer is closed then. */
  readonly leaving?: AbortSignal;
}

/** One MCP connection over a pair of streams; resolves when the client has closed it. */
export async function serveStreams(runtime: RuntimeCore, streams: Streams): Promise<void> {
  const { LineTransport } = await import("./transport/stdio.ts");
  const { log, clock, serving } = runtime;
  const isAskedAgain = (method: string) => streams.isFront === true && method === "tasks/result";
  const lines = new LineTransport({ ...streams, isProxied: streams.isFront === true, isAskedAgain, clock, log });
  const conversation = new Conversation(serving.served, {
    authentication: { caller: runtime.localUser },
    door: "stdio",
    way: lines,
    hostName: streams.host,
    folder: toWorkingFolder(streams.folder),
    readFolder: streams.namesFolder === true ? toWorkingFolder : undefined,
    environment: streams.environment,
    isFront: streams.isFront === true,
    firstId: createFirstNumber(),
  });
  serving.conversations.add(conversation);
  const onLeaving = () => lines.closeWhenIdle();
  streams.leaving?.addEventListener("abort", onLeaving);
  // It may have been decided while this was being put together.
  if (streams.leaving?.aborted === true) onLeaving();
  await new Promise<void>((resolve) => {
    lines.onMessage = (message) => conversation.receive(message);
    lines.onError = (error) => log.debug(`mcp: ${error.message}`);
    lines.onClose = () => {
      conversation.close();
      resolve();
    };
    lines.start();
  });
  serving.conversations.delete(conversation);
  streams.leaving?.removeEventListener("abort", onLeaving);
}

/**
 * Opens the HTTP endpoint of a runtime. Where its port or socket is in use by another server of this home, the error
 * names that server.
 */
export async function serveRuntimeOverHttp(runtime: Runtime, folder: string): Promise<HttpDoor> {
  const { home, http } = runtime.settings;
  const door = await openHttp(runtime).catch((error: unknown) => {
    const place = http.socket === undefined ? { port: http.port } : { socket: http.socket };
    const isInUse = error instanceof RuntimeError && error.code === "PORT_IN_USE";
    const server = isInUse ? findHttpServer(home, place) : undefined;
    throw server === undefined ? error : inUseBy(server, place, error);
  });
  const place = http.socket === undefined ? { port: door.port ?? http.port } : { socket: http.socket };
  const forget = recordHttpServer(home, place, { url: door.url, folder });
  return {
    ...door,
    async close() {
      forget();
      await door.close();
    },
  };
}

function inUseBy({ pid, url, folder }: HttpRecord, place: HttpPlace, cause: unknown): RuntimeError {
  const [what, flag] = "port" in place ? [`Port ${place.port}`, "--port"] : [place.socket, "--socket"];
  return new RuntimeError(
    "PORT_IN_USE",
    `${what} is in use by ${thisProgram.title} (process ${pid}), which serves ${folder} at ${url}; stop it, or choose another one with ${flag}.`,
    { cause },
  );
}

async function openHttp(runtime: Runtime): Promise<HttpDoor> {
  const { settings, serving, clock, log } = runtime;
  const { issuers } = settings.auth;
  const { serveHttp } = await import("./transport/http/http-door.ts");
  // A server on a socket has no URL but this one, which clients of sockets send as Host.
  let listensAt = "http://localhost/mcp";
  const publicUrl = () => settings.http.publicUrl ?? listensAt;
  const signIn = issuers.length === 0 ? undefined : await import("./auth/access-token.ts");
  const openKeys = async () => (await runtime.tasks.shared()).keys;
  const verifiers = [
    createKeyVerifier({ openKeys, project: settings.project, clock, log }),
    ...(signIn === undefined ? [] : [signIn.createTokenVerifier({ issuers, publicUrl, clock, log })]),
  ];
  const door = await serveHttp({
    serving,
    host: settings.http.host,
    port: settings.http.port,
    socket: settings.http.socket,
    authenticate: createAuthenticator({
      homeToken: runtime.token,
      localUser: runtime.localUser,
      allowAnonymous: settings.http.allowAnonymous,
      verifiers,
      issuers: issuers.map(({ issuer }) => issuer),
    }),
    ...(signIn !== undefined && { resource: createResource({ issuers, publicUrl, name: settings.name }) }),
    publicUrl: settings.http.publicUrl,
    allowedOrigins: settings.http.allowedOrigins,
    hasRoom: system.hasDescriptorsLeft,
    clock,
    log,
  });
  if (door.port !== undefined) listensAt = door.url;
  return door;
}

/** Describes the server at the first request, when its URL is known. */
function createResource(facts: Omit<ResourceFacts, "publicUrl"> & { readonly publicUrl: () => string }) {
  let resource: ProtectedResource | undefined;
  return () => {
    resource ??= describeResource({ ...facts, publicUrl: facts.publicUrl() });
    return resource;
  };
}
