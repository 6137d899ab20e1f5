/** What an answer is written to: node's own response is one. */
export interface DoorResponse {
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  readonly closed: boolean;
  /** No more may be written. */
  readonly writableEnded: boolean;
  /** All of it was handed on. */
  readonly writableFinished: boolean;
  /** What was written and not yet taken, in bytes. */
  readonly writableLength: number;
  /** Null as long as its turn on its connection has not come. */
  readonly socket: unknown;
  on(event: "drain", listener: () => void): unknown;
  once(event: "close", listener: () => void): unknown;
  writeHead(status: number, headers: Readonly<Record<string, string | number>>): unknown;
  flushHeaders(): void;
  /** False when no more should be written before `drain`. */
  write(bytes: Uint8Array): boolean;
  end(text?: string): unknown;
  /** Breaks it off. */
  destroy(): unknown;
}
