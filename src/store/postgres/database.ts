import pg from "pg";
import { type Clock, sleep } from "../../clock.ts";
import { isStoreError, type RuntimeError } from "../../errors.ts";
import type { Logger } from "../../log.ts";
import { fromExactText, toExactText } from "../exact-text.ts";
import type { PostgresAddress } from "./address.ts";
import { connectionTerms } from "./connection-terms.ts";
import { DatabaseClock } from "./database-clock.ts";
import { inspectServer } from "./inspect.ts";
import { migrate } from "./migrate.ts";
import type { SqlValue, SqlValues } from "./rows.ts";
import { prepareTexts, type StatementName } from "./statements.ts";
import { isLost, isPassing, toTrouble, unavailable } from "./trouble.ts";

/** How long whoever wants something of the database waits for it to come back. */
const maxTroubleMs = 15_000;
/** How often the log is told of the same trouble. */
const tellMs = 60_000;

/** One statement, and its rows. */
export type Query = <Row = unknown>(name: StatementName, values: SqlValues) => Promise<Row[]>;

/** One PostgreSQL schema: opened when it is first needed, its statements by name, tried again while it is away. */
export class Database {
  readonly address: PostgresAddress;
  readonly time: DatabaseClock;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #pool: pg.Pool;
  readonly #texts: ReturnType<typeof prepareTexts>;
  readonly #running = new Set<Promise<unknown>>();
  #opening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #lastTold: { readonly message: string; readonly at: number } | undefined;

  constructor(address: PostgresAddress, clock: Clock, log: Logger) {
    this.address = address;
    this.#clock = clock;
    this.#log = log;
    this.#texts = prepareTexts(address.schema);
    this.time = new DatabaseClock(clock);
    this.#pool = new pg.Pool({ ...connectionTerms(address.access), max: address.poolSize, idleTimeoutMillis: 30_000 });
    // An idle connection that breaks is replaced when one is needed; one in use says so to whoever uses it.
    this.#pool.on("error", () => undefined);
    this.#pool.on("connect", (client) => client.on("error", () => undefined));
  }

  /** The text of a statement, for a connection that is not one of these. */
  textOf(name: StatementName): string {
    return this.#texts[name].text;
  }

  get isClosed(): boolean {
    return this.#closing !== undefined;
  }

  /** Connects and brings the schema up to date, unless that is done. Rejects at once when it cannot be used. */
  async open(): Promise<void> {
    await this.#ready().catch((error: unknown) => {
      throw toTrouble(error, this.address.shown);
    });
  }

  /** Whoever needs it opens it; when it cannot be, the next one tries again. */
  async #ready(): Promise<void> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    await this.#opening;
    if (this.time.isOld) void this.#once((query) => this.#measure(query)).catch(() => undefined);
  }

  async #open(): Promise<void> {
    const client = await this.#pool.connect();
    let isSound = false;
    try {
      await inspectServer(this.#pool, client, this.address, this.#log);
      await migrate(client, this.address);
      await this.#measure(this.#queryOn(client));
      isSound = true;
    } finally {
      client.release(!isSound);
    }
  }

  /** What was asked for before is done first. */
  close(): Promise<void> {
    this.#closing ??= Promise.allSettled([this.#opening, ...this.#running]).then(() => this.#pool.end());
    return this.#closing;
  }

  /**
   * Does something, and again while the database is away, for a while. `isAgain` when an earlier try may have been
   * carried out although its answer never came.
   */
  async patiently<T>(act: (query: Query, isAgain: boolean) => Promise<T>): Promise<T> {
    if (this.isClosed) throw unavailable(this.address.shown, "it is closed");
    const running = this.#insist(act);
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  async #insist<T>(act: (query: Query, isAgain: boolean) => Promise<T>): Promise<T> {
    const startedAt = this.#clock.monotonic();
    let isAgain = false;
    for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 2, 500)) {
      try {
        await this.#ready();
        return await this.#once((query) => act(query, isAgain));
      } catch (error) {
        isAgain ||= isLost(error);
        if (!isPassing(error) || this.#clock.monotonic() - startedAt > maxTroubleMs) throw this.#told(error);
        await sleep(this.#clock, pauseMs);
      }
    }
  }

  /** One statement, patiently. It must do no harm when it is carried out twice. */
  query<Row>(name: StatementName, values: SqlValues): Promise<Row[]> {
    return this.patiently((query) => query<Row>(name, values));
  }

  async #once<T>(act: (query: Query) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    let broken = false;
    try {
      return await act(this.#queryOn(client));
    } catch (error) {
      broken = isLost(error);
      throw error;
    } finally {
      client.release(broken);
    }
  }

  #queryOn(client: pg.PoolClient): Query {
    return async <Row>(name: StatementName, values: SqlValues) => {
      const { text, names } = this.#texts[name];
      const given = names.map((key) => toSql(values[key]));
      const { rows } = await client.query<Record<string, unknown>>({ name, text, values: given });
      return rows.map(fromSql) as Row[];
    };
  }

  async #measure(query: Query): Promise<void> {
    await this.time.measure(async () => (await query<{ now: number }>("now", {}))[0]?.now);
  }

  /** The operator's word on it, with the database's name: once a minute, however many want something of it meanwhile. */
  #told(error: unknown): unknown {
    const trouble = toTrouble(error, this.address.shown);
    if (isStoreError(trouble) && !this.isClosed) this.#tell(trouble);
    return trouble;
  }

  #tell({ message }: RuntimeError): void {
    const at = this.#clock.monotonic();
    if (this.#lastTold?.message === message && at - this.#lastTold.at < tellMs) return;
    this.#lastTold = { message, at };
    this.#log.error(message);
  }
}

function toSql(value: SqlValue | undefined): unknown {
  if (typeof value === "string") return toExactText(value);
  if (Array.isArray(value)) return value.map((item) => (typeof item === "string" ? toExactText(item) : item));
  return value ?? null;
}

function fromSql(row: Record<string, unknown>): Record<string, unknown> {
  for (const [name, value] of Object.entries(row))
    if (typeof value === "string") row[name] = fromExactText(value);
    else if (Array.isArray(value))
      row[name] = value.map((item) => (typeof item === "string" ? fromExactText(item) : item));
  return row;
}
