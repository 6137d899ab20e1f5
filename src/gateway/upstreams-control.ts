/** One upstream, for a person who asks. */
export interface UpstreamStatus {
  readonly name: string;
  readonly kind: "command" | "url";
  /** Its program, or its address without what is asked of it: never an argument. */
  readonly target: string;
  readonly state: "idle" | "starting" | "open" | "down";
  /** Why it is down, or what is odd about it; no secret is in it. */
  readonly trouble?: string;
  readonly connections: number;
  /** Calls that run in it now. */
  readonly calls: number;
  /** Its tools that are served: neither those that the config denies, nor those that cannot be served. */
  readonly tools: number;
  /** The revision that it speaks, where that is known. */
  readonly era?: string;
  /** The processes that were started for it. */
  readonly pids: readonly number[];
}

/** What a person may do with the upstreams of a running server. */
export interface UpstreamsControl {
  statuses(): readonly UpstreamStatus[];
  /** Closes its connections; the next call opens another. Throws a CommandError where there is none of this name. */
  restart(name: string): Promise<void>;
}
