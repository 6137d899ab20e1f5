import type { IncomingMessage } from "node:http";
import { anonymous, type Caller } from "../../command/caller.ts";
import { RpcCode } from "../../errors.ts";
import type { Logger } from "../../log.ts";
import { isObject } from "../../wire/json.ts";
import type { DoorRequest } from "./door-request.ts";
import { HttpRefusal } from "./http-refusal.ts";

/** Who calls a server inside somebody else's app: the app says so. */

/** What an app looks at to know who calls. */
export interface CallerRequest {
  readonly method: string;
  /** Whole, with the path that the client has asked for, wherever the app has mounted us. */
  readonly url: string;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The request as the app knows it, with what its own middleware has put there. */
  readonly original: Request | IncomingMessage;
}

/** The caller; undefined for somebody who may not come in. */
export type Identify = (request: CallerRequest) => Caller | undefined | Promise<Caller | undefined>;

/** Who asks; throws, or rejects with, what somebody is refused with who may not come in. */
export type Identification = (request: DoorRequest, known: Caller | undefined) => Caller | Promise<Caller>;

interface IdentificationOptions {
  readonly identify?: Identify | undefined;
  readonly localUser: Caller;
  readonly log: Logger;
}

export function createIdentification({ identify, localUser, log }: IdentificationOptions): Identification {
  const checkCaller = (found: unknown) => toCaller(found, localUser);
  const fail = (error: unknown): never => {
    if (error instanceof HttpRefusal) throw error;
    log.error("`identify` failed", { error });
    throw new HttpRefusal(500, "Internal error", { code: RpcCode.Internal });
  };
  return (request, known) => {
    try {
      if (known !== undefined) return checkCaller(known);
      if (identify === undefined) return anonymous;
      if (request.isRepeated("authorization"))
        throw new HttpRefusal(401, "There is more than one Authorization header; send one.");
      const found = identify(new LookedAt(request));
      // Of somebody else's kind of promise, too.
      if (isObject(found) && "then" in found) return Promise.resolve(found).then(checkCaller).catch(fail);
      return checkCaller(found);
    } catch (error) {
      return fail(error);
    }
  };
}

/** What is no caller must not become one that others are taken for. */
function toCaller(found: unknown, localUser: Caller): Caller {
  if (found === undefined || found === null)
    throw new HttpRefusal(401, "This server wants to know who calls; send the credential that it asks for.");
  const { kind, issuer, client, subject } = isObject(found) ? found : {};
  if (kind === "local") return localUser;
  if (kind === "anonymous") return anonymous;
  if (kind === "token" && [issuer, client, subject].every((part) => typeof part === "string")) return found as Caller;
  throw new TypeError(
    'A caller is { kind: "token", issuer, client, subject }, all of them texts, or one of kind "local" or "anonymous".',
  );
}

/** Made of a request as far as it is looked at. */
class LookedAt implements CallerRequest {
  readonly #request: DoorRequest;
  #headers: CallerRequest["headers"] | undefined;

  constructor(request: DoorRequest) {
    this.#request = request;
  }

  get method(): string {
    return this.#request.method ?? "";
  }

  get url(): string {
    return this.#request.url;
  }

  get headers(): CallerRequest["headers"] {
    this.#headers ??= this.#request.toHeaders();
    return this.#headers;
  }

  get original(): CallerRequest["original"] {
    return this.#request.original;
  }
}
