import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Headed } from "../../wire/routing.ts";

/** What is looked at of a request, whoever has taken it: node, or a server that hands over what the web has. */
export interface DoorRequest extends Headed {
  readonly method: string | undefined;
  /** Where it came from, as the client has named us. */
  readonly host: string | undefined;
  /** The connection that it came by, where there is one to know. */
  readonly socket?: Socket | undefined;
  /** Whole, with the path that the client has asked for. */
  readonly url: string;
  readonly original: IncomingMessage | Request;
  /** All of them, by their names in lower case. */
  toHeaders(): Readonly<Record<string, string>>;
  /** True for a header that was sent more than once, where only one of them is kept. */
  isRepeated(name: string): boolean;
}

export class NodeRequest implements DoorRequest {
  readonly original: IncomingMessage;

  constructor(original: IncomingMessage) {
    this.original = original;
  }

  get method(): string | undefined {
    return this.original.method;
  }

  get host(): string | undefined {
    return this.original.headers.host;
  }

  /** Where an app has mounted us, Express keeps what was asked for beside what is left of it. */
  get url(): string {
    const { original } = this;
    const path = "originalUrl" in original ? original.originalUrl : original.url;
    const isEncrypted = "encrypted" in original.socket && original.socket.encrypted === true;
    return `${isEncrypted ? "https" : "http"}://${this.host}${String(path)}`;
  }

  get socket(): Socket {
    return this.original.socket;
  }

  header(name: string): string | undefined {
    const value = this.original.headers[name];
    return typeof value === "string" ? value : value?.join(", ");
  }

  toHeaders(): Record<string, string> {
    const record = emptyRecord();
    for (const name in this.original.headers) record[name] = this.header(name) ?? "";
    return record;
  }

  /** Node keeps the first of several and drops the rest without a word. */
  isRepeated(header: string): boolean {
    const { rawHeaders } = this.original;
    let count = 0;
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const name = rawHeaders[at] as string;
      if (name.length === header.length && name.toLowerCase() === header) count += 1;
    }
    return count > 1;
  }
}

export class WebRequest implements DoorRequest {
  readonly original: Request;

  constructor(original: Request) {
    this.original = original;
  }

  get method(): string {
    return this.original.method;
  }

  get url(): string {
    return this.original.url;
  }

  /** Of HTTP/2, and of what never was on a wire, the address alone tells. */
  get host(): string | undefined {
    return this.original.headers.get("host") ?? new URL(this.original.url).host;
  }

  header(name: string): string | undefined {
    return this.original.headers.get(name) ?? undefined;
  }

  toHeaders(): Record<string, string> {
    const record = emptyRecord();
    for (const [name, value] of this.original.headers) record[name] = value;
    return record;
  }

  /** All are kept, one behind the other. */
  isRepeated(): boolean {
    return false;
  }
}

/** A header may have any name, and must not be found where none was sent. */
function emptyRecord(): Record<string, string> {
  return Object.create(null) as Record<string, string>;
}
