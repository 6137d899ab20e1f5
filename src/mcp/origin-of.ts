import { detailsOf } from "../command/caller.ts";
import type { Command } from "../command/command.ts";
import type { Origin, OriginClient } from "../command/context.ts";
import { isObject, type Json } from "../wire/json.ts";
import { tasksExtension } from "../wire/revisions.ts";
import { environmentKey } from "./environment-key.ts";
import { takesTasks } from "./generation/tasks-2026.ts";
import type { ClientRequest } from "./request.ts";

/** Where a call came from, with as much of its client as whoever runs it, now or later, may need. */
export function originOf(request: ClientRequest, command: Command): Origin {
  const client = clientFor(request, command);
  return { door: "mcp", folder: request.connection.folder, ...(client !== undefined && { client }) };
}

function clientFor(
  { caller, client, connection, meta, inputResponses }: ClientRequest,
  { foreign }: Command,
): OriginClient | undefined {
  const details = detailsOf(caller);
  const known = details === undefined ? undefined : { caller: details };
  const [elicitation, sampling, roots] = (["elicitation", "sampling", "roots"] as const).map((name) =>
    toKept(client.capabilities[name]),
  );
  // Who has folders may be asked for them by any command.
  if (foreign === undefined)
    return roots === undefined && known === undefined
      ? undefined
      : { ...(roots !== undefined && { capabilities: { roots } }), ...known };
  const { session } = connection;
  const environment = environmentKey(connection.environment);
  // What follows its progress has a token of its own.
  const { progressToken: _ours, ...given } = meta;
  const said = toKept(given, maxSaid) ?? {};
  const responses = toKept(inputResponses, maxSaid) ?? {};
  return {
    ...(session !== undefined && { session }),
    ...(environment !== undefined && { environment }),
    isModern: client.isModern,
    capabilities: {
      ...(elicitation !== undefined && { elicitation }),
      ...(sampling !== undefined && { sampling }),
      ...(roots !== undefined && { roots }),
      ...(takesTasks(client.capabilities) && { extensions: { [tasksExtension]: {} } }),
    },
    ...known,
    ...(Object.keys(said).length > 0 && { meta: said }),
    ...(Object.keys(responses).length > 0 && { responses }),
  };
}

/** It is kept with every task of its client, so it is as short as such declarations are. */
const maxDeclared = 1_000;
const maxSaid = 64_000;

function toKept(declared: object | undefined, most = maxDeclared): Json | undefined {
  if (declared === undefined) return undefined;
  if (isEmpty(declared)) return {};
  return isObject(declared) && JSON.stringify(declared).length <= most ? declared : {};
}

function isEmpty(declared: object): boolean {
  for (const _name in declared) return false;
  return true;
}
