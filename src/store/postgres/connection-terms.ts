import type pg from "pg";
import type { ServerAccess, ServerTls } from "./address.ts";
import { driver } from "./driver.ts";

/** An answer that takes longer will not come: the other end is gone and has not said so. */
const answerMs = 10_000;
const connectMs = 5_000;

/** Numbers of 64 bits come as numbers: none of ours is too large for one. */
const types = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    oid === driver().types.builtins.INT8 ? Number : driver().types.getTypeParser(oid, format as "text")) as never,
};

/** What every connection of ours begins with. */
export function connectionTerms({ ssl, ...access }: ServerAccess): pg.ClientConfig {
  return {
    ...access,
    ...(ssl !== undefined && { ssl: ssl === false ? false : toSsl(ssl) }),
    types,
    application_name: "meanwhile",
    keepAlive: true,
    connectionTimeoutMillis: connectMs,
    query_timeout: answerMs,
  };
}

function toSsl({ isHostChecked, ca }: ServerTls) {
  if (isHostChecked === undefined) return { rejectUnauthorized: false };
  return {
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca }),
    ...(!isHostChecked && { checkServerIdentity: () => undefined }),
  };
}
