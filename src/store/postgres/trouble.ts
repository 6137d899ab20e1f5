import { isOutOfDescriptors, outOfDescriptors, RuntimeError } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";

/** The same for the operator, who hears which database it is, and for clients, who do not. */
interface Trouble {
  readonly why: string;
  readonly forClients: string;
}

const unopened = "The task database cannot be used; whoever runs the server finds the reason in its log.";
const unreachable = "The task database cannot be reached; call again in a moment.";

/** By PostgreSQL's own codes, or classes of them, or the system's codes. */
const troubles: Readonly<Record<string, Trouble>> = {
  "28P01": { why: "the password or the user's name is wrong; check both in its URL", forClients: unopened },
  "28000": {
    why: "the server does not let this user in; check its pg_hba.conf, and the user and `sslmode` in the URL",
    forClients: unopened,
  },
  "3D000": { why: "there is no such database; create it, or name another in the URL", forClients: unopened },
  "42501": {
    why: "its user may not do this; grant CREATE on the database, or create the schema and make the user its owner",
    forClients: unopened,
  },
  "25006": {
    why: "it may only be read; point the URL at the primary server",
    forClients:
      "The task database may only be read; whoever runs the server has to point it at one that may be written.",
  },
  "53100": {
    why: "the server's disk is full; make room, running tasks then go on",
    forClients:
      "The disk that the task database is on is full; whoever runs the server has to make room, then call again.",
  },
  "53300": {
    why: "the server has no connection left; raise its max_connections, or lower `pool` in the URL",
    forClients: "The task database has no connection left; call again in a moment.",
  },
  "53": { why: "the server is short of resources; look into its log", forClients: unreachable },
  "57P03": { why: "the server is starting up, or shutting down; wait for it", forClients: unreachable },
  ENOTFOUND: { why: "its host is not known; check the host in its URL", forClients: unreachable },
  EAI_AGAIN: { why: "its host's name cannot be looked up right now; check the network", forClients: unreachable },
  ECONNREFUSED: {
    why: "nothing answers at this host and port; start the server, or check the URL",
    forClients: unreachable,
  },
  EMFILE: { why: outOfDescriptors, forClients: unreachable },
  ENFILE: { why: outOfDescriptors, forClients: unreachable },
};

const gone: Trouble = {
  why: "the connection was lost and cannot be made again; check the server and the network",
  forClients: unreachable,
};
const noTls: Trouble = {
  why: "the server takes no TLS; take `sslmode` out of the URL, or switch TLS on there",
  forClients: unopened,
};
const needsTls: Trouble = { why: "the server demands TLS; set sslmode=require in the URL", forClients: unopened };
const wrongHost: Trouble = {
  why: "the server's certificate is for another host; name the host in the URL as the certificate does, or use sslmode=verify-ca",
  forClients: unopened,
};
const badCertificate: Trouble = {
  why: "the server's certificate is not one to trust; name its authority with sslrootcert= in the URL, or use sslmode=require",
  forClients: unopened,
};

/** Nothing was done, and it may be otherwise in a moment. */
const passing = ["53300", "57P03", "40001", "40P01", "55P03"];
/** The connection is gone; whether what was asked for has been done is not known. */
const lost = ["57P01", "57P02", "57P05", "08"];
const systemLost = ["ECONNRESET", "EPIPE", "ETIMEDOUT", "ECONNABORTED", "EHOSTUNREACH", "ENETUNREACH", "EHOSTDOWN"];
const systemPassing = ["ECONNREFUSED", "EAI_AGAIN", "ENOENT"];
/** What the driver says, which has no codes. */
const driverLost =
  /^(Connection terminated|Query read timeout|Client has encountered a connection error|timeout exceeded|timeout expired)/;

/** True when the same may work in a moment. */
export function isPassing(error: unknown): boolean {
  const code = codeOf(error);
  return isLost(error) || passing.includes(code) || systemPassing.includes(code);
}

/** True when the connection broke: then it is not known whether what was asked for has been done. */
export function isLost(error: unknown): boolean {
  const code = codeOf(error);
  return lost.some((start) => code.startsWith(start)) || systemLost.includes(code) || driverLost.test(wordsOf(error));
}

/** What went wrong with a database, as an operator can act on it. Never the URL, which may hold a password. */
export function toTrouble(error: unknown, shown: string): unknown {
  if (error instanceof RuntimeError) return error;
  const known = troubleOf(error);
  if (known === undefined) return error;
  return unavailable(shown, known.why, known.forClients, error);
}

export function unavailable(shown: string, why: string, forClients = unopened, cause?: unknown): RuntimeError {
  return new RuntimeError("STORE_UNAVAILABLE", `The task database ${shown} cannot be used: ${why}.`, {
    ...(cause !== undefined && { cause }),
    forClients,
  });
}

/** The driver is there only where somebody has asked for it. */
export function missingDriver(): RuntimeError {
  return new RuntimeError(
    "STORE_UNAVAILABLE",
    `${thisProgram.variable("STORE")} names a PostgreSQL database, and the package that reaches one is not installed: npm install pg.`,
    { forClients: unopened },
  );
}

function troubleOf(error: unknown): Trouble | undefined {
  const code = codeOf(error);
  const words = wordsOf(error);
  if (/no pg_hba\.conf entry .*(no encryption|SSL off)/s.test(words)) return needsTls;
  if (/does not support SSL/.test(words)) return noTls;
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") return wrongHost;
  if (/CERT|SELF_SIGNED|UNABLE_TO_/.test(code) || /certificate/.test(words)) return badCertificate;
  const known = troubles[code] ?? troubles[code.slice(0, 2)];
  if (known !== undefined) return known;
  if (isOutOfDescriptors(error)) return { why: outOfDescriptors, forClients: unreachable };
  return isPassing(error) ? gone : undefined;
}

function codeOf(error: unknown): string {
  const { code, errors } = (error ?? {}) as { code?: unknown; errors?: unknown };
  if (typeof code === "string") return code;
  return Array.isArray(errors) && errors.length > 0 ? codeOf(errors[0]) : "";
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : "";
}
