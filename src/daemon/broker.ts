import { createServer, type Server, type Socket } from "node:net";
import { systemClock, within } from "../clock.ts";
import { isOutOfDescriptors, messageOf, outOfDescriptors, ShuttingDown } from "../errors.ts";
import type { Logger } from "../log.ts";
import { type DaemonReply, type DaemonStatus, type Greeting, readFirstLine, readGreeting, toLine } from "./greeting.ts";
import { isProved, type Proof, prove } from "./proof.ts";

/** What a front says of its session, when there is a front. */
export interface SessionFacts {
  readonly host?: string | undefined;
  /** Where the session works. */
  readonly folder?: string | undefined;
  /** Its variables, where servers are started for it: held in memory, and nowhere else. */
  readonly environment?: Readonly<Record<string, string>> | undefined;
  readonly isFront?: boolean;
}

export interface BrokerOptions {
  readonly key: string;
  /** The variables whose values make another daemon, as of now. */
  readonly env: () => readonly string[];
  /** Serves MCP on a connection until it ends. */
  readonly onConnection: (socket: Socket, facts: SessionFacts) => Promise<void>;
  readonly status: () => Omit<DaemonStatus, "connections">;
  /** Somebody wants another connection to an upstream. Throws a sentence where that is not to be had. */
  readonly onRestart?: (upstream: string) => Promise<void>;
  /** Called for a request to stop; the caller of the daemon has its reply when this has resolved. */
  readonly onStop: (isNow: boolean, keepsQuestions: boolean) => void | Promise<void>;
  /** False when one more session would leave too few file descriptors for the work itself. */
  readonly hasRoom?: () => boolean;
  /** True when the daemon leaves though nobody has told it to. */
  readonly isReplaced?: () => boolean;
  /** Where others can see the socket: who does not prove that it knows this is not served. */
  readonly secret?: string | undefined;
  readonly log: Logger;
}

/** Who connects and says nothing is not a client, and must not keep a daemon. */
const firstLineMs = 60_000;
/** How long a daemon that has said good-bye waits for the fronts to hang up. */
const hangUpMs = 1_000;
const tellMs = 60_000;

/** Listens on a socket and hands over connections: each is one MCP client, whatever ids and names it uses. */
export class Broker {
  readonly #options: BrokerOptions;
  /** One for each socket: the daemon's own, and perhaps the one of the bundled commands. */
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();
  /** Those who said hello, and understand a good-bye; each with the length of its hello. */
  readonly #fronts = new Map<Socket, number>();
  /** Those who said stop, and wait for the end. */
  readonly #stoppers = new Set<Socket>();
  #isLeaving = false;
  #toldFullAt = Number.NEGATIVE_INFINITY;

  constructor(options: BrokerOptions) {
    this.#options = options;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /**
   * Listens on one more socket. Rejects when the socket cannot be opened. With `isControlOnly` the socket serves no MCP:
   * it answers the control protocol and closes other connections.
   */
  listen(file: string, { isControlOnly = false } = {}): Promise<void> {
    const server = createServer((socket) => this.#accept(socket, isControlOnly));
    server.on("error", (error) =>
      isOutOfDescriptors(error) ? this.#tellFull() : this.#options.log.error("the socket failed", { error }),
    );
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(file, () => {
        server.off("error", reject);
        // `stopListening` was called while the socket was opened, and would not be called for it again.
        if (this.#isLeaving && !isControlOnly) {
          server.close();
          return reject(new ShuttingDown());
        }
        this.#servers.push(server);
        resolve();
      });
    });
  }

  /** Closes all its sockets; a stdio proxy that still connects is sent to the next daemon. */
  stopListening(): void {
    this.#isLeaving = true;
    for (const server of this.#servers.splice(0)) server.close();
  }

  /**
   * Ends every connection, with a word to those who understand it; resolves when all have hung up, or take too long.
   */
  async closeAll(waiting = 0): Promise<void> {
    for (const socket of this.#stoppers) socket.end(toLine({ meanwhile: "left", waiting }));
    for (const socket of this.#sockets) if (!this.#stoppers.has(socket)) this.#end(socket);
    const closed = Promise.all(
      [...this.#sockets].map((socket) => new Promise((resolve) => socket.once("close", resolve))),
    );
    await within(systemClock, hangUpMs, closed);
  }

  /** Stops listening and breaks every connection without a word, as the crash of its process does. */
  breakAll(): void {
    this.stopListening();
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Has every front look for its daemon again. Whoever is no front has no environment of its own, and stays. */
  sendOn(): void {
    for (const socket of this.#fronts.keys()) socket.write(toLine({ meanwhile: "moved" }));
  }

  #end(socket: Socket): void {
    const helloBytes = this.#fronts.get(socket);
    this.#fronts.delete(socket);
    if (this.#isLeaving && helloBytes !== undefined) this.#sayBye(socket, helloBytes);
    else if (!socket.writableEnded) socket.end(() => socket.destroy());
  }

  /**
   * A front that was hung up on in mid-sentence would not get to read the good-bye: so it hangs up first, and what it
   * still says is not heard.
   */
  #sayBye(socket: Socket, helloBytes: number): void {
    const heardBytes = socket.bytesRead - socket.readableLength - helloBytes;
    socket.removeAllListeners("data").resume();
    socket.end(
      toLine({ meanwhile: "bye", heardBytes, ...(this.#options.isReplaced?.() === true && { isReplaced: true }) }),
    );
  }

  #accept(socket: Socket, isControlOnly: boolean): void {
    this.#sockets.add(socket);
    socket.on("error", (error) => this.#options.log.debug(`a connection broke: ${error.message}`));
    socket.on("close", () => {
      this.#sockets.delete(socket);
      this.#fronts.delete(socket);
      this.#stoppers.delete(socket);
    });
    const cancelLimit = systemClock.after(firstLineMs, () => socket.destroy());
    socket.on("close", cancelLimit);
    readFirstLine(socket, (line, all) => {
      cancelLimit();
      const greeting = line === undefined ? undefined : readGreeting(line);
      const { secret } = this.#options;
      if (secret !== undefined && !isProved(secret, "caller", greeting ?? {})) return socket.destroy();
      if (greeting !== undefined) return this.#greet(socket, greeting, (line?.length ?? 0) + 1);
      if (isControlOnly) return socket.destroy();
      // Not one of ours: every byte of it is MCP.
      if (line !== undefined) socket.unshift(all.subarray(0, line.length + 1));
      this.#serve(socket, {});
    });
  }

  #greet(socket: Socket, greeting: Greeting & Partial<Proof>, helloBytes: number): void {
    const { key, env, status, onStop, secret } = this.#options;
    const shown = secret !== undefined && { proof: prove(secret, "daemon", greeting.nonce ?? "") };
    const reply = (message: DaemonReply) => socket.write(toLine({ ...message, ...shown }));
    if (greeting.meanwhile === "status") {
      // Neither this connection nor one that waits for the end of the daemon is a client.
      reply({ meanwhile: "status", ...status(), connections: this.#sockets.size - this.#stoppers.size - 1 });
      socket.end();
    } else if (greeting.meanwhile === "restart") {
      void this.#restart(greeting.upstream).then((trouble) => {
        reply({ meanwhile: "done", ...(trouble !== undefined && { trouble }) });
        socket.end();
      });
    } else if (greeting.meanwhile === "stop") {
      this.#stoppers.add(socket);
      // The next daemon may start after this reply, and the draining one can be found.
      void Promise.resolve(onStop(greeting.isNow, greeting.keepsQuestions === true)).then(() => {
        reply({ meanwhile: "bye" });
        socket.resume();
      });
    } else if (this.#isLeaving || greeting.key !== key) {
      reply({ meanwhile: "no", why: this.#isLeaving ? "leaving" : "another" });
      socket.end();
    } else if (this.#options.hasRoom?.() === false) {
      this.#tellFull();
      reply({ meanwhile: "no", why: "full" });
      socket.end();
    } else {
      reply({ meanwhile: "welcome", pid: status().pid, env: env() });
      this.#fronts.set(socket, helloBytes);
      const { host, folder, env: environment } = greeting;
      this.#serve(socket, { host, folder, environment, isFront: true });
    }
  }

  /** Why it could not be done; undefined when it is. */
  async #restart(upstream: string): Promise<string | undefined> {
    try {
      if (this.#options.onRestart === undefined) return "This daemon has no upstreams.";
      await this.#options.onRestart(upstream);
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  }

  /** Once a minute: whoever has to wait comes again and again. */
  #tellFull(): void {
    const at = systemClock.monotonic();
    if (at - this.#toldFullAt < tellMs) return;
    this.#toldFullAt = at;
    this.#options.log.warn(`there is no room for another session: ${outOfDescriptors}`, {
      connections: this.#sockets.size,
    });
  }

  #serve(socket: Socket, facts: SessionFacts): void {
    this.#options
      .onConnection(socket, facts)
      .catch((error: unknown) => this.#options.log.error("a connection could not be served", { error }))
      .finally(() => this.#end(socket));
  }
}
