import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { systemClock, within } from "../../clock.ts";
import { RpcCode, RuntimeError } from "../../errors.ts";
import { fieldsOf } from "../../wire/json.ts";
import { LineSplitter, maxLineBytes, parseLine, toWaitedLine } from "../../wire/lines.ts";
import { readReply } from "../greeting.ts";
import { DaemonFull, DaemonUnreachable } from "../reach/unreachable.ts";
import type { FindAnswer } from "./kept-answers.ts";
import { Session } from "./session.ts";
import { StandIn, type StoodIn } from "./stand-in.ts";

export interface PumpOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** A connection on which the daemon has said welcome; rejects when there is no way to get one. */
  readonly reach: () => Promise<Socket>;
  /** A session goes on without a daemon, for now. */
  readonly onUnreachable: (error: Error) => void;
  /** The daemon has something to say to whoever runs this proxy. Default: it is dropped. */
  readonly onNotice?: (text: string) => void;
}

const newline = Buffer.of(0x0a);
/**
 * How long the daemon may take to answer what was asked before the client hung up: hosts wait two seconds before they
 * kill.
 */
const answerLimitMs = 1_000;
const closeLimitMs = 5_000;
/** A daemon that ends again and again is not run into in a tight loop. */
const shortLifeMs = 2_000;
const firstPauseMs = 100;
const longestPauseMs = 2_000;
const maxWaiting = 100;
/** How long a client may take to ask for what is at hand: a daemon that starts meanwhile would only be in its way. */
const askLimitMs = 200;

/**
 * Carries lines between an MCP client on pipes and the daemon on a socket, byte for byte. When the daemon is gone,
 * the client keeps its connection: what was under way is asked again where that is safe and answered with an error
 * where it is not, and the next daemon is told how the session began.
 */
export class Pump {
  readonly #options: PumpOptions;
  readonly #session = new Session();
  readonly #fromClient = new LineSplitter();
  readonly #ended = Promise.withResolvers<void>();
  #socket: Socket | undefined;
  #isReaching = false;
  #hasInputEnded = false;
  #isEndDue = false;
  #saidBye = false;
  #isReplaced = false;
  #wasConnected = false;
  #isMoving = false;
  #connectedAt = 0;
  /** How much this daemon was sent, how much of it can have reached it, and how much of it it says to have heard. */
  #sentBytes = 0;
  #takenBytes = 0;
  #heardBytes: number | undefined;
  #pauseMs = 0;
  /** Lines that arrived while there was no daemon, each with the time of its arrival. */
  #waiting: { readonly line: Buffer; readonly arrivedAt: number }[] = [];
  #isReading = false;
  /** Answers until the first daemon is there. */
  #standIn: StandIn | undefined;
  #onAsked: () => void = () => {};

  constructor(options: PumpOptions) {
    this.#options = options;
  }

  /** Resolves when the client has hung up; rejects when no daemon can be reached. */
  async run(): Promise<void> {
    const { output } = this.#options;
    output.on("error", () => this.#ended.resolve());
    output.on("drain", () => this.#socket?.resume());
    await Promise.race([this.#reach(), this.#ended.promise]);
    this.#read();
    await this.#ended.promise;
    await this.#flush();
  }

  /**
   * Answers what it can in place of a first daemon that is not there yet; the daemon is told how the session began all
   * the same, and confirms what was told. Resolves when the client has asked for a list, or for what only the daemon
   * can answer.
   */
  async standIn(find: FindAnswer): Promise<void> {
    if (this.#wasConnected || this.#standIn !== undefined) return;
    this.#standIn = new StandIn(find);
    const asked = Promise.withResolvers<void>();
    this.#onAsked = asked.resolve;
    this.#read();
    await within(systemClock, askLimitMs, asked.promise);
  }

  #read(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    const { input } = this.#options;
    input.on("data", (chunk: Buffer) => this.#onClientData(chunk));
    input.on("end", () => this.#onClientEnd());
    input.on("error", () => this.#onClientEnd());
  }

  /** Goes over to the daemon that is the right one by now, as soon as nobody waits for an answer. */
  moveOn(): void {
    this.#isMoving = true;
    this.#move();
  }

  #move(): void {
    if (this.#isMoving && this.#socket !== undefined && !this.#session.isOwed) this.#socket.end();
  }

  #onClientData(chunk: Buffer): void {
    this.#inOneWrite(() => {
      for (const line of this.#fromClient.push(chunk)) {
        if (line === "tooLong")
          this.#answer({
            id: null,
            error: { code: RpcCode.Request, message: `The message is larger than ${maxLineBytes / 1024 / 1024} MiB.` },
          });
        else this.#send(line);
      }
    });
  }

  /**
   * Sends together what is sent meanwhile. Where the daemon has hung up, it is refused on the spot, and nothing of it
   * has reached anybody.
   */
  #inOneWrite(send: () => void): void {
    const socket = this.#socket;
    socket?.cork();
    send();
    socket?.uncork();
    if (socket?.writable === true) this.#takenBytes = this.#sentBytes;
  }

  #send(line: Buffer, arrivedAt = systemClock.monotonic()): void {
    if (this.#socket === undefined) {
      const stoodIn = this.#standIn?.answer(line);
      if (stoodIn !== undefined) {
        this.#answerFor(line, stoodIn);
        return;
      }
      if (isRequest(line)) this.#onAsked();
      this.#waiting.push({ line, arrivedAt });
      // Who waits for room in its first daemon reads on, and so notices that its client has gone.
      if (this.#wasConnected || this.#waiting.length > maxWaiting) this.#options.input.pause();
      void this.#reach();
      return;
    }
    this.#sentBytes += line.length + 1;
    this.#session.sent(line, this.#sentBytes, arrivedAt);
    this.#socket.write(line);
    if (!this.#socket.write(newline)) this.#options.input.pause();
  }

  #answerFor(line: Buffer, { id, method, result }: StoodIn): void {
    this.#session.told(line, method, result);
    this.#write(Buffer.from(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`));
    if (method.endsWith("/list")) this.#onAsked();
  }

  #onClientEnd(): void {
    if (this.#hasInputEnded) return;
    // A last line is one also without its newline.
    const rest = this.#fromClient.rest();
    if (rest !== undefined && (this.#socket ?? this.#standIn) !== undefined) this.#inOneWrite(() => this.#send(rest));
    // Who has said all it has to say, as a script does, waits for its answers: the first daemon is still to hear the
    // questions.
    if (
      this.#socket === undefined &&
      this.#standIn !== undefined &&
      this.#waiting.some(({ line }) => isRequest(line))
    ) {
      this.#isEndDue = true;
      return;
    }
    this.#hasInputEnded = true;
    if (this.#socket === undefined) {
      this.#ended.resolve();
      return;
    }
    if (!this.#session.isOwed) this.#socket.end();
    systemClock.after(answerLimitMs, () => this.#socket?.end());
    systemClock.after(closeLimitMs, () => this.#ended.resolve());
  }

  /** What is written is out before the process ends, unless nobody reads it. */
  async #flush(): Promise<void> {
    const { output } = this.#options;
    if (!output.writable) return;
    await new Promise<void>((resolve) => {
      output.on("error", () => resolve());
      output.write("", () => resolve());
      systemClock.after(closeLimitMs, resolve);
    });
  }

  async #reach(): Promise<void> {
    if (this.#isReaching || this.#hasInputEnded) return;
    this.#isReaching = true;
    try {
      if (this.#pauseMs > 0) await new Promise<void>((resolve) => systemClock.after(this.#pauseMs, resolve));
      this.#attach(await this.#options.reach());
    } catch (error) {
      this.#onUnreachable(error as Error);
    } finally {
      this.#isReaching = false;
    }
  }

  /** A session that never began ends; one that goes on is told, and tries again with the next thing it wants. */
  #onUnreachable(error: Error): void {
    const isPassing = error instanceof DaemonFull;
    if (!this.#wasConnected && !isPassing) {
      this.#ended.reject(error);
      return;
    }
    this.#options.onUnreachable(error);
    if (!this.#wasConnected && !this.#isEndDue) {
      // Its client has nothing yet that it could go on with: it waits until there is room, or hangs up.
      systemClock.after(0, () => void this.#reach());
      return;
    }
    for (const { line } of this.#waiting.splice(0)) this.#session.sent(line);
    for (const message of this.#session.giveUp(wordsFor(error))) this.#answer(message);
    if (this.#isEndDue) this.#ended.resolve();
    else this.#options.input.resume();
  }

  #attach(socket: Socket): void {
    this.#socket = socket;
    this.#wasConnected = true;
    this.#saidBye = false;
    this.#isReplaced = false;
    this.#connectedAt = systemClock.monotonic();
    const splitter = new LineSplitter(Number.POSITIVE_INFINITY);
    socket.on("data", (chunk: Buffer) => {
      const { output } = this.#options;
      output.cork();
      for (const line of splitter.push(chunk)) this.#onDaemonLine(line as Buffer);
      output.uncork();
    });
    socket.on("drain", () => this.#options.input.resume());
    socket.on("error", () => {});
    socket.on("close", () => this.#onDaemonGone(socket));
    this.#sentBytes = 0;
    this.#takenBytes = 0;
    this.#heardBytes = undefined;
    this.#standIn = undefined;
    this.#inOneWrite(() => this.#catchUp(socket));
    socket.resume();
    this.#options.input.resume();
    if (this.#isEndDue) this.#onClientEnd();
    else if (this.#hasInputEnded) socket.end();
  }

  /** Tells a new daemon how the session began, and all that waits for an answer. */
  #catchUp(socket: Socket): void {
    for (const line of this.#session.replay(systemClock.monotonic())) this.#sendToDaemon(socket, line);
    if (this.#isMoving) for (const message of this.#session.listsChanged()) this.#answer(message);
    this.#isMoving = false;
    for (const { line, arrivedAt } of this.#waiting.splice(0)) {
      const waited = toWaitedLine(systemClock.monotonic() - arrivedAt);
      if (waited !== undefined) this.#sendToDaemon(socket, waited);
      this.#send(line, arrivedAt);
    }
  }

  /** Sends a line that is not the client's. */
  #sendToDaemon(socket: Socket, line: Buffer): void {
    this.#sentBytes += line.length + 1;
    socket.write(Buffer.concat([line, newline]));
  }

  #onDaemonLine(line: Buffer): void {
    const own = readReply(line);
    if (own !== undefined) {
      if (own.meanwhile === "bye") {
        this.#saidBye = true;
        this.#isReplaced = own.isReplaced === true;
        this.#heardBytes = own.heardBytes;
      } else if (own.meanwhile === "moved") this.moveOn();
      return;
    }
    if (this.#session.received(line)) this.#write(line);
    for (const message of this.#session.takeNews()) this.#answer(message);
    for (const text of this.#session.takeNotices()) this.#options.onNotice?.(text);
    if (this.#hasInputEnded && !this.#session.isOwed) this.#socket?.end();
    this.#move();
  }

  #onDaemonGone(socket: Socket): void {
    if (this.#socket !== socket) return;
    this.#socket = undefined;
    if (this.#hasInputEnded) {
      this.#ended.resolve();
      return;
    }
    for (const message of this.#session.lost(this.#heardBytes ?? this.#takenBytes, this.#saidBye))
      this.#answer(message);
    const wasShort = !this.#isMoving && systemClock.monotonic() - this.#connectedAt < shortLifeMs;
    this.#pauseMs = wasShort ? Math.min(Math.max(this.#pauseMs * 2, firstPauseMs), longestPauseMs) : 0;
    // A daemon that was told to stop is not started again before somebody has a use for it.
    if (!this.#saidBye || this.#isReplaced || this.#session.isOwed || this.#isMoving) void this.#reach();
  }

  #answer(message: object): void {
    this.#write(Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message })));
  }

  #write(line: Buffer): void {
    const { output } = this.#options;
    output.write(line);
    if (!output.write(newline)) this.#socket?.pause();
  }
}

/** True for what wants an answer, or looks like it. */
function isRequest(line: Buffer): boolean {
  const { id, method } = fieldsOf(parseLine(line));
  return id !== undefined || method === undefined;
}

/** What a client is told of it: no path of ours. */
function wordsFor(error: Error): string {
  if (error instanceof RuntimeError)
    return (
      error.forClients ?? "The home folder cannot be used; whoever runs this server finds the reason on its stderr."
    );
  return (error instanceof DaemonUnreachable ? error.forClients : undefined) ?? error.message;
}
