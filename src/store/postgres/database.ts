import type pg from "pg";
import { type Clock, sleep } from "../../clock.ts";
import { isStoreError, type RuntimeError } from "../../errors.ts";
import type { Logger } from "../../log.ts";
import { fromExactText, toExactText } from "../exact-text.ts";
import type { PostgresAddress } from "./address.ts";
import { connectionTerms } from "./connection-terms.ts";
import { DatabaseClock } from "./database-clock.ts";
import { driver } from "./driver.ts";
import { inspectServer } from "./inspect.ts";
import { migrate } from "./migrate-schema.ts";
import { prepareTexts, type StatementName } from "./postgres-statements.ts";
import type { PostgresValue, PostgresValues } from "./task-rows.ts";
import { isLost, isPassing, toTrouble, unavailable } from "./trouble.ts";

/** How long whoever wants something of the database waits for it to come back. */
const maxTroubleMs = 15_000;
/** How often the log is told of the same trouble. */
const tellMs = 60_000;

/** One statement, and its rows. */
export type Query = <Row = unknown>(name: StatementName, values: PostgresValues) => Promise<Row[]>;

/** One PostgreSQL schema: opened when it is first needed, its statements by name, tried again while it is away. */
export class Database {
  readonly address: PostgresAddress;
  readonly time: DatabaseClock;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #prepare: typeof migrate;
  readonly #pool: pg.Pool;
  readonly #texts: ReturnType<typeof prepareTexts>;
  readonly #running = new Set<Promise<unknown>>();
  #opening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #lastTold: { readonly message: string; readonly at: number } | undefined;

  /** `prepare` brings the schema to where it has to be, or refuses it. */
  constructor(address: PostgresAddress, clock: Clock, log: Logger, prepare: typeof migrate = migrate) {
    this.address = address;
    this.#clock = clock;
    this.#log = log;
    this.#prepare = prepare;
    this.#texts = prepareTexts(address.schema);
    this.time = new DatabaseClock(clock);
    const terms = { ...connectionTerms(address.access), pipeline: true };
    const { Pool } = driver();
    this.#pool = new Pool({ ...terms, max: address.poolSize, idleTimeoutMillis: 30_000 });
    // One that breaks while idle is replaced when it is needed; one that breaks in use fails what it is used for.
    this.#pool.on("error", () => undefined);
    this.#pool.on("connect", (client) => {
      client.on("error", () => undefined);
      // Ours look things up in one way whatever is asked for, and to plan that anew takes longer than to do it.
      client.query("set plan_cache_mode = force_generic_plan").catch(() => undefined);
    });
  }

  /** The text of a statement, for a connection that is not one of these. */
  textOf(name: StatementName): string {
    return this.#texts[name].text;
  }

  readonly monotonic = () => this.#clock.monotonic();

  readonly sleep = (ms: number) => sleep(this.#clock, ms);

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
      await this.#prepare(client, this.address);
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
  patiently<T>(act: (query: Query, isAgain: boolean) => Promise<T>): Promise<T> {
    return this.untilOver(() => this.insist(act));
  }

  /** What is begun before it is closed is done first. */
  async untilOver<T>(start: () => Promise<T>): Promise<T> {
    if (this.isClosed) throw unavailable(this.address.shown, "it is closed");
    const running = start();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  /** The same for a part of what has begun, and when it has; `wasTried` when it may have been done already. */
  async insist<T>(
    act: (query: Query, isAgain: boolean) => Promise<T>,
    wasTried = false,
    startedAt = this.monotonic(),
  ): Promise<T> {
    let isAgain = wasTried;
    for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 2, 500)) {
      try {
        await this.#ready();
        return await this.#once((query) => act(query, isAgain));
      } catch (error) {
        isAgain ||= isLost(error);
        if (!isPassing(error) || this.monotonic() - startedAt > maxTroubleMs) throw this.#told(error);
        await sleep(this.#clock, pauseMs);
      }
    }
  }

  /** One statement, patiently. It must do no harm when it is carried out twice. */
  query<Row>(name: StatementName, values: PostgresValues): Promise<Row[]> {
    return this.patiently((query) => query<Row>(name, values));
  }

  /** A part of what has begun, tried once. */
  async try<T>(act: (query: Query) => Promise<T>): Promise<T> {
    await this.#ready();
    return await this.#once(act);
  }

  #once<T>(act: (query: Query) => Promise<T>): Promise<T> {
    return this.#onClient((client) => act(this.#queryOn(client)));
  }

  async #onClient<T>(act: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    let broken = false;
    try {
      return await act(client);
    } catch (error) {
      broken = isLost(error);
      throw error;
    } finally {
      client.release(broken);
    }
  }

  #queryOn(client: pg.PoolClient): Query {
    return async <Row>(name: StatementName, values: PostgresValues) => {
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

function toSql(value: PostgresValue | undefined): unknown {
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
