import { fieldsOf, isObject, type Json } from "../../wire/json.ts";
import { parseLine } from "../../wire/lines.ts";
import { isRequestId, metaKeys } from "../../wire/request-envelope.ts";
import { legacyRevision, legacyRevisions, modernRevision, tasksExtension } from "../../wire/revisions.ts";
import { type FindAnswer, modernWithTasks } from "./kept-answers.ts";

/** A request and the text of its result. */
export interface StoodIn {
  readonly id: string | number;
  readonly method: string;
  readonly result: string;
}

/** A longer request is none of these. */
const maxRequestBytes = 64 * 1024;

/**
 * Answers a client while its daemon starts, with what the last daemon answered to the same. Whatever is not plainly
 * such a request waits for the daemon, and so does all that follows a beginning which only the daemon can judge.
 */
export class StandIn {
  readonly #find: FindAnswer;
  /** The revision that the connection speaks; undefined before it is known, null where it is the daemon's to say. */
  #revision: string | null | undefined;

  constructor(find: FindAnswer) {
    this.#find = find;
  }

  /** Undefined where only the daemon can answer. */
  answer(line: Buffer): StoodIn | undefined {
    const { jsonrpc, id, method, params = {} } = line.length > maxRequestBytes ? {} : fieldsOf(parseLine(line));
    if (id === undefined && typeof method === "string") return undefined;
    const isRequest = jsonrpc === "2.0" && typeof method === "string" && isRequestId(id) && isObject(params);
    const revision = isRequest ? this.#revisionOf(method, params) : null;
    // A probe decides nothing.
    if (method !== "server/discover" || revision === null) this.#revision ??= revision;
    const kind = revision === modernRevision && takesTasks(params as Json) ? modernWithTasks : revision;
    const result = kind === null ? undefined : this.#find(kind, method as string);
    return result === undefined ? undefined : { id: id as string | number, method: method as string, result };
  }

  /** The revision that this is answered in; null where that is the daemon's to say. */
  #revisionOf(method: string, params: Json): string | null {
    const { _meta: meta = {}, ...others } = params;
    if (!isObject(meta) || meta.progressToken !== undefined || this.#revision === null) return null;
    if (method === "initialize")
      return this.#revision === undefined && Object.keys(meta).length === 0 ? revisionOfHandshake(others) : null;
    if (Object.keys(others).length > 0) return null;
    if (this.#revision !== undefined && this.#revision !== modernRevision) return this.#revision;
    return isModernEnvelope(meta) ? modernRevision : null;
  }
}

function takesTasks({ _meta }: Json): boolean {
  return fieldsOf(fieldsOf(fieldsOf(_meta)[metaKeys.clientCapabilities]).extensions)[tasksExtension] !== undefined;
}

function revisionOfHandshake({ protocolVersion, capabilities, clientInfo }: Json): string | null {
  if (typeof protocolVersion !== "string" || !isObject(capabilities) || !isClientInfo(clientInfo)) return null;
  return legacyRevisions.includes(protocolVersion) ? protocolVersion : legacyRevision;
}

function isModernEnvelope({
  [metaKeys.revision]: revision,
  [metaKeys.clientCapabilities]: capabilities,
  [metaKeys.clientInfo]: info,
  ...others
}: Json): boolean {
  const isPlain = others[metaKeys.logLevel] === undefined && (info === undefined || isClientInfo(info));
  return revision === modernRevision && isObject(capabilities) && isPlain;
}

function isClientInfo(info: unknown): boolean {
  return isObject(info) && typeof info.name === "string" && typeof info.version === "string";
}
