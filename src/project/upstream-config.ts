export type UpstreamPrefix = "always" | "collision" | "never";

/** A server that stands behind this one, as hosts write theirs: a command that starts it, or its address. */
export interface UpstreamConfig {
  readonly command?: string;
  readonly args?: readonly string[];
  /** Where it is started. Default: where the session works that needs it, over HTTP where the server was started. */
  readonly cwd?: string;
  /** Variables for it, beside those of the session. A value may be `${NAME}` or `file:/path`. */
  readonly env?: Readonly<Record<string, string>>;
  readonly url?: string;
  /** Sent with every request. A value may hold `${NAME}`, or be `file:/path`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** `sse`: the HTTP transport of 2024-11-05. Default: found out. */
  readonly transport?: "http" | "sse";
  /** How to sign in, where it wants a token. Default: found out, in a browser. */
  readonly oauth?: UpstreamOAuth;
  /** Who shares one server: a session, all sessions of a caller, or everybody. Default: session. */
  readonly share?: "session" | "caller" | "all";
  /** Only these of its tools are served; `*` stands for any letters. */
  readonly allow?: readonly string[];
  /** These are not, whatever `allow` says. */
  readonly deny?: readonly string[];
  /** Tools that may be run again after a crash, whatever they say of themselves. */
  readonly rerun?: readonly string[];
  /** Tools that are expected to take long. */
  readonly long?: readonly string[];
  /** How long it may take to start. Default: 60. */
  readonly startSeconds?: number;
  /** Closed when nobody has asked it anything for so long, until somebody does. Default: 3600, or 600 at an address. */
  readonly idleSeconds?: number;
  /** No call may take longer; a person's time does not count. Default: none. */
  readonly timeLimitSeconds?: number;
  /** Not started, and none of its tools are served. Clients are told so. Default: false. */
  readonly disabled?: boolean;
}

export interface UpstreamOAuth {
  /** Default: `browser` where one can be opened, else `device`. */
  readonly grant?: "browser" | "device" | "client-credentials";
  readonly clientId?: string;
  /** May be `${NAME}` or `file:/path`. */
  readonly clientSecret?: string;
  readonly scopes?: readonly string[];
}
