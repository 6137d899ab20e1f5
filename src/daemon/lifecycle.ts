import { existsSync, realpathSync } from "node:fs";
import path from "node:path";
import type { Clock } from "../clock.ts";
import { isOutOfDescriptors, messageOf, outOfDescriptors } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { Home } from "../paths.ts";
import { identityOf, isAnswered } from "../system/socket-file.ts";
import { type OwnSocket, system } from "../system/system.ts";
import type { Broker } from "./broker.ts";
import { type DaemonRecord, drainName, lockFile, readRecord, removeRecord, writeRecord } from "./record.ts";

export interface Lock {
  release(): void;
}

export interface LifecycleOptions {
  readonly home: Home;
  readonly key: string;
  /** Only the bundled commands are served: their socket has a name that everybody knows. */
  readonly isPackAlone: boolean;
  /** What its record says beside where it is. */
  readonly about?: Pick<DaemonRecord, "project" | "folder" | "wraps" | "flags" | "secret">;
  readonly pid: number;
  readonly idleMs: number;
  /** Whether tasks of this project are alive, for whomever. */
  readonly hasLiveTasks: () => Promise<boolean>;
  /** Whether this daemon runs a call or a task right now. */
  readonly isWorking?: () => boolean;
  /** A lock that ends with the process; undefined when another has it. */
  readonly takeLock: (file: string) => Lock | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

const lookMs = 1_000;
/** How often a daemon connects to the `mcp.sock` of a newer one, to see whether that one was killed. */
const probeMs = 5_000;

/**
 * The life of one daemon. A lock makes it the only one of its key, whoever else starts; whatever it finds at its
 * socket's place was left by a dead one. It leaves when nobody needs it, or when its home is gone.
 */
export class Lifecycle {
  readonly #options: LifecycleOptions;
  readonly #left = Promise.withResolvers<{ readonly isNow: boolean }>();
  readonly #locks: Lock[];
  /** The socket that proxies find by the key of this daemon. */
  readonly socket: string;
  readonly #ownSocket: OwnSocket;
  /** The well-known socket of the bundled commands, which belongs to the daemon that was started last. */
  readonly #packSocket: OwnSocket | undefined;
  readonly #questionsEnd = new AbortController();
  readonly #graceEnd = new AbortController();
  /** Resolves when a draining daemon can be found. */
  #draining: Promise<void> = Promise.resolve();
  #drainSocket: OwnSocket | undefined;
  #broker: Broker | undefined;
  #isReplaced = false;
  #isExhausted = false;
  #idleSince: number | undefined;
  #hasLeft = false;
  #cancelLook: (() => void) | undefined;
  #nextProbeAt = 0;
  /** The last sentence about the well-known socket, so that the log has it once. */
  #packTrouble: string | undefined;

  /** Undefined when another daemon of this key is there. */
  static begin(options: LifecycleOptions): Lifecycle | undefined {
    const { home, key, takeLock } = options;
    system.ensurePrivateFolder(home.runFolder);
    const lock = takeLock(lockFile(home, key));
    return lock === undefined ? undefined : new Lifecycle(options, lock);
  }

  private constructor(options: LifecycleOptions, lock: Lock) {
    this.#options = options;
    const { home, key, isPackAlone } = options;
    this.#locks = [lock];
    this.socket = system.placeSocket(path.join(home.runFolder, `${key}.sock`), readRecord(home, key)?.socket);
    this.#ownSocket = system.ownSocket(this.socket);
    // The home itself may be a link: its user has named it.
    const isKnown = isPackAlone && system.fitsSocket(home.packSocket);
    this.#packSocket = isKnown ? system.ownSocket(home.packSocket, realpathSync(home.folder)) : undefined;
  }

  /** Opens the door and says where it is. */
  async open(broker: Broker): Promise<void> {
    this.#broker = broker;
    await this.#ownSocket.open((name) => broker.listen(name));
    await this.#takePackSocket();
    this.#writeRecord();
    this.#look();
  }

  /** Where clients that are no proxies connect: the well-known socket, while it belongs to this daemon. */
  get clientSocket(): string {
    return this.#packSocket?.isThere() === true ? this.#options.home.packSocket : this.socket;
  }

  /** Proxies do not need it, so that the daemon serves without it where something else is in its place. */
  async #takePackSocket(): Promise<void> {
    try {
      await this.#packSocket?.open((name) => this.#broker?.listen(name) ?? Promise.resolve());
      this.#packTrouble = undefined;
    } catch (error) {
      const trouble = messageOf(error);
      if (this.#hasLeft || trouble === this.#packTrouble) return;
      this.#packTrouble = trouble;
      this.#options.log.warn(`the socket of the bundled commands was not opened: ${trouble}`);
    }
  }

  /**
   * Takes the well-known socket over when the daemon that had it has stopped or was killed. One that answers belongs to
   * a newer daemon and is left alone.
   */
  async #checkPackSocket(): Promise<void> {
    const { clock, home } = this.#options;
    if (this.#packSocket === undefined || this.#packSocket.isThere()) return;
    const found = identityOf(home.packSocket);
    if (found !== undefined) {
      if (clock.monotonic() < this.#nextProbeAt) return;
      this.#nextProbeAt = clock.monotonic() + probeMs;
      if (await isAnswered(home.packSocket)) return;
      // Another daemon may have taken it over during the probe, and this one may have left.
      if (this.#hasLeft || identityOf(home.packSocket) !== found) return;
    }
    await this.#takePackSocket();
  }

  /** Resolves when it is time to leave: nobody is to be let in any more, and the next daemon may start. */
  get left(): Promise<{ readonly isNow: boolean }> {
    return this.#left.promise;
  }

  /** Leaves though nobody has told it to: the next daemon is needed at once. */
  makeWay(): void {
    this.#isReplaced = true;
    void this.leave(false, true);
  }

  /** Aborted once no run may wait for a person any more. */
  get questionsEnd(): AbortSignal {
    return this.#questionsEnd.signal;
  }

  /** Aborted once no run has any time left, also when the grace period has begun. */
  get graceEnd(): AbortSignal {
    return this.#graceEnd.signal;
  }

  get isReplaced(): boolean {
    return this.#isReplaced;
  }

  /**
   * Gives up socket, record and locks, so that another daemon can begin while this one ends its work. With
   * `keepsQuestions` the runs that wait for a person may wait on, until it is told to leave without. A daemon that has
   * work to end drains: it has a record and a socket of its own until `endDrain`. Resolves when these can be found.
   */
  leave(isNow = false, keepsQuestions = false): Promise<void> {
    const { home, key, pid, isWorking } = this.#options;
    if (!keepsQuestions) this.#questionsEnd.abort();
    if (isNow) this.#graceEnd.abort();
    if (this.#hasLeft) return this.#draining;
    this.#hasLeft = true;
    this.#cancelLook?.();
    // Only its own: another daemon may have put one there. They are known by their inodes, which are not reused as long
    // as the sockets are open.
    this.#tidy(() => this.#ownSocket.remove());
    this.#tidy(() => this.#packSocket?.remove());
    this.#broker?.stopListening();
    this.#tidy(() => removeRecord(home, key, pid));
    for (const lock of this.#locks.splice(0)) lock.release();
    if (!isNow && isWorking?.() === true) this.#draining = this.#drain();
    this.#left.resolve({ isNow });
    return this.#draining;
  }

  /** Opens the socket of a draining daemon and writes its record, so that `daemon status` and `daemon stop` find it. */
  async #drain(): Promise<void> {
    const { home, key, pid, about, log } = this.#options;
    const name = drainName(key, pid);
    let socket = "";
    try {
      const file = system.placeSocket(path.join(home.runFolder, `${name}.sock`), this.socket);
      this.#drainSocket = system.ownSocket(file);
      await this.#drainSocket.open((at) => this.#broker?.listen(at, { isControlOnly: true }) ?? Promise.resolve());
      socket = file;
    } catch (error) {
      log.warn(`the draining daemon has no socket, only SIGTERM stops it: ${messageOf(error)}`);
    }
    const start = system.ownStart();
    this.#tidy(() =>
      writeRecord(home, name, { ...about, pid, socket, isDraining: true, ...(start !== undefined && { start }) }),
    );
  }

  /** Removes the record and the socket of a draining daemon. */
  async endDrain(): Promise<void> {
    await this.#draining;
    const { home, key, pid } = this.#options;
    this.#broker?.stopListening();
    this.#tidy(() => this.#drainSocket?.remove());
    this.#tidy(() => removeRecord(home, drainName(key, pid), pid));
  }

  /** Ends as in a crash: breaks all connections and frees the locks as the system would; socket and record stay. */
  abandon(): void {
    this.#hasLeft = true;
    this.#cancelLook?.();
    this.#broker?.breakAll();
    for (const lock of this.#locks.splice(0)) lock.release();
  }

  /**
   * What cannot be removed, where nothing may be written for one, keeps nobody from leaving: whoever comes next finds
   * nobody there.
   */
  #tidy(act: () => unknown): void {
    try {
      act();
    } catch (error) {
      this.#options.log.warn(`the daemon leaves something behind: ${(error as Error).message}`);
    }
  }

  #writeRecord(): void {
    const { home, key, pid, about } = this.#options;
    writeRecord(home, key, { ...about, pid, socket: this.socket });
  }

  #look(): void {
    if (this.#hasLeft) return;
    this.#cancelLook = this.#options.clock.after(lookMs, () => {
      this.#check().then(
        (isStaying) => {
          this.#isExhausted = false;
          if (isStaying) this.#look();
        },
        (error: unknown) => {
          this.#tell(error);
          this.#look();
        },
      );
    });
  }

  /** What lasts is said once. */
  #tell(error: unknown): void {
    const isExhausted = isOutOfDescriptors(error);
    if (isExhausted && !this.#isExhausted) this.#options.log.error(`the daemon can open nothing: ${outOfDescriptors}`);
    else if (!isExhausted) this.#options.log.error("looking after the daemon failed; trying again", { error });
    this.#isExhausted = isExhausted;
  }

  /** False when it has left. */
  async #check(): Promise<boolean> {
    const { home, key, pid, log } = this.#options;
    if (!existsSync(home.folder)) return this.#leaveBecause("the home folder is gone", true);
    if (!this.#ownSocket.isThere()) {
      log.info("the daemon leaves: its socket was taken away; the next front starts another daemon");
      this.makeWay();
      return false;
    }
    await this.#checkPackSocket();
    if (this.#hasLeft) return false;
    if (readRecord(home, key)?.pid !== pid) {
      log.warn("its record was taken away; it is written again");
      this.#writeRecord();
    }
    return await this.#checkIdle();
  }

  async #checkIdle(): Promise<boolean> {
    const { clock, idleMs, hasLiveTasks } = this.#options;
    if (this.#isConnected) return this.#stay();
    this.#idleSince ??= clock.monotonic();
    if (clock.monotonic() - this.#idleSince < idleMs) return true;
    if (await hasLiveTasks()) return this.#stay();
    // Somebody may have come while we looked.
    return this.#isConnected ? this.#stay() : this.#leaveBecause("nobody needs it", false);
  }

  get #isConnected(): boolean {
    return (this.#broker?.connections ?? 0) > 0;
  }

  #stay(): true {
    this.#idleSince = undefined;
    return true;
  }

  #leaveBecause(why: string, isNow: boolean): false {
    this.#options.log.info(`the daemon leaves: ${why}`);
    void this.leave(isNow);
    return false;
  }
}
