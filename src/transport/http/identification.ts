import type { IncomingMessage } from "node:http";
import { type AppCaller, type CallersOfServer, toCaller } from "../../auth/app-caller.ts";
import { anonymous, type Caller } from "../../command/caller.ts";
import { RpcCode } from "../../errors.ts";
import type { Logger } from "../../log.ts";
import { isObject } from "../../wire/json.ts";
import type { DoorRequest } from "./door-request.ts";
import { HttpRefusal } from "./http-refusal.ts";

/** What an app reads to identify the caller of a request. */
export interface CallerRequest {
  readonly method: string;
  /** Whole, with the path that the client has asked for, wherever the app has mounted the server. */
  readonly url: string;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The request as the app knows it, with what its own middleware has put there. */
  readonly original: Request | IncomingMessage;
}

/** Returns the caller; undefined refuses the request. */
export type Identify = (request: CallerRequest) => AppCaller | undefined | Promise<AppCaller | undefined>;

/** Returns the caller of a request. Throws, or rejects with, the HTTP error for a request without a valid credential. */
export type Identification = (request: DoorRequest, known: AppCaller | undefined) => Caller | Promise<Caller>;

interface IdentificationOptions {
  readonly identify?: Identify | undefined;
  readonly callers: CallersOfServer;
  readonly log: Logger;
}

/** Identifies callers of a server inside an app: `identify` of the app alone decides. */
export function createIdentification({ identify, callers, log }: IdentificationOptions): Identification {
  const checkCaller = (found: AppCaller | undefined | null) => {
    if (found === undefined || found === null)
      throw new HttpRefusal(401, "This server wants to know who calls; send the credential that it asks for.");
    return toCaller(callers, found);
  };
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
      const found = identify(new ReadRequest(request));
      // A promise of any library counts.
      if (isObject(found) && "then" in found) return Promise.resolve(found).then(checkCaller).catch(fail);
      return checkCaller(found as AppCaller | undefined);
    } catch (error) {
      return fail(error);
    }
  };
}

/** Builds each part of a request when it is read. */
class ReadRequest implements CallerRequest {
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
