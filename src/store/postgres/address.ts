import { readFileSync } from "node:fs";
import { RuntimeError } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";

/** How to reach a server, as the driver takes it. Holds the password: never shown, never logged. */
export interface ServerAccess {
  readonly host?: string;
  readonly port?: number;
  readonly user?: string;
  readonly password?: string;
  readonly database?: string;
  readonly ssl?: false | ServerTls;
}

export interface ServerTls {
  /** Undefined: whoever answers is believed, as PostgreSQL's own clients do where no more is asked for. */
  readonly isHostChecked?: boolean;
  readonly ca?: string;
}

/** A PostgreSQL store's URL, taken apart. */
export interface PostgresAddress {
  readonly access: ServerAccess;
  readonly schema: string;
  readonly poolSize: number;
  /** How many connections whoever opens it may need in all. */
  readonly needed: number;
  /** Host and database, as everybody may read it. */
  readonly shown: string;
}

/** Beside the pool: one that listens, and where tasks are run one that keeps leases. */
export const besidePool = { working: 2, serving: 1 };
const defaultSchema = "meanwhile";
const defaultPool = 8;
const known = ["schema", "pool", "sslmode", "sslrootcert", "host"];
const sslModes = ["disable", "require", "no-verify", "verify-ca", "verify-full"];

/** True for what names a PostgreSQL database instead of a file. */
export function isPostgresUrl(store: string): boolean {
  return /^postgres(ql)?:\/\//i.test(store);
}

/** Takes a URL apart. Throws one sentence, without the URL: it may hold a password. */
export function parseAddress(store: string, beside = besidePool.working): PostgresAddress {
  const url = toUrl(store);
  const unknown = [...url.searchParams.keys()].find((name) => !known.includes(name));
  if (unknown !== undefined) throw misspelt(`\`${unknown}\` is no parameter of it; there are ${known.join(", ")}`);
  const host = url.searchParams.get("host") ?? decode(url.hostname).replace(/^\[(.*)\]$/, "$1");
  const database = decode(url.pathname.slice(1));
  const access = {
    ...(host !== "" && { host }),
    ...(url.port !== "" && { port: Number(url.port) }),
    ...(url.username !== "" && { user: decode(url.username) }),
    ...(url.password !== "" && { password: decode(url.password) }),
    ...(database !== "" && { database }),
    ...sslOf(url),
  };
  const place = `${host === "" ? "localhost" : host}${url.port === "" ? "" : `:${url.port}`}`;
  const poolSize = poolOf(url);
  return { access, schema: schemaOf(url), poolSize, needed: poolSize + beside, shown: `${place}/${database}` };
}

function toUrl(store: string): URL {
  try {
    return new URL(store);
  } catch {
    throw misspelt("signs such as @, / and # in a user's name or password are written as %40, %2F and %23");
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw misspelt("a % in it is written as %25");
  }
}

function schemaOf(url: URL): string {
  const schema = url.searchParams.get("schema") ?? defaultSchema;
  if (!/^[a-z_][a-z0-9_]{0,47}$/.test(schema) || schema.startsWith("pg_"))
    throw misspelt("`schema` is a name of up to 48 small letters, digits and _, and does not begin with pg_");
  return schema;
}

function poolOf(url: URL): number {
  const pool = url.searchParams.get("pool");
  if (pool === null) return defaultPool;
  if (!/^\d{1,3}$/.test(pool) || Number(pool) < 2) throw misspelt("`pool` is a number of connections from 2 to 999");
  return Number(pool);
}

/** What the modes mean to PostgreSQL's own clients. */
function sslOf(url: URL): Pick<ServerAccess, "ssl"> {
  const mode = url.searchParams.get("sslmode");
  const certificate = url.searchParams.get("sslrootcert");
  if (mode !== null && !sslModes.includes(mode)) throw misspelt(`\`sslmode\` is one of ${sslModes.join(", ")}`);
  const isChecked = mode?.startsWith("verify") === true;
  // Whoever names an authority means to have it asked.
  if (certificate !== null && !isChecked)
    throw misspelt("`sslrootcert` is for sslmode=verify-ca and sslmode=verify-full, and one of them has to be there");
  if (mode === null) return {};
  if (mode === "disable") return { ssl: false };
  const ca = certificate === null ? {} : { ca: readCertificate(certificate) };
  return { ssl: isChecked ? { isHostChecked: mode === "verify-full", ...ca } : {} };
}

function readCertificate(file: string): string {
  const text = readText(file);
  if (text === undefined) throw misspelt(`the certificate ${file} that \`sslrootcert\` names cannot be read`);
  // The driver would take it for no authority at all.
  if (!text.includes("-----BEGIN CERTIFICATE-----"))
    throw misspelt(`the file ${file} that \`sslrootcert\` names holds no certificate in PEM`);
  return text;
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

function misspelt(why: string): RuntimeError {
  return new RuntimeError(
    "STORE_UNAVAILABLE",
    `The URL of the task database is not one that can be used: ${why}. Set ${thisProgram.variable("STORE")} to postgres://user:password@host/database.`,
    { forClients: "The task database's URL cannot be used; whoever runs the server finds the reason in its log." },
  );
}
