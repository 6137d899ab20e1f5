import { RequestError, RpcCode } from "../errors.ts";
import { fieldsOf, textOf } from "../wire/json.ts";
import type { CallerInfo } from "./client.ts";
import { ServerError } from "./client-errors.ts";
import { answerMs, type ServerConnection } from "./connection/server-connection.ts";

const kinds = ["local", "key", "user", "app", "anonymous"] as const;

/** Asks a server of Meanwhile who its caller is. */
export async function askWhoami(connection: ServerConnection): Promise<CallerInfo> {
  const options = { isRepeatable: true, limitMs: answerMs };
  const result = await connection.request("meanwhile/whoami", {}, options).catch((error: unknown) => {
    throw error instanceof ServerError && error.code === RpcCode.Method ? unknownToServer() : error;
  });
  const { kind, id, name, client, scopes, groups } = fieldsOf(result.caller);
  const known = kinds.find((one) => one === kind);
  if (known === undefined || typeof id !== "string") throw unknownToServer();
  const [shownName, shownClient] = [textOf(name), textOf(client)];
  return {
    ...{ kind: known, id },
    ...(shownName !== undefined && { name: shownName }),
    ...(shownClient !== undefined && { client: shownClient }),
    ...{ scopes: textsIn(scopes), groups: textsIn(groups) },
  };
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

function unknownToServer(): RequestError {
  return new RequestError("method", "This server does not say who its caller is.");
}
