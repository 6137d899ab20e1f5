export interface ScenarioReport {
  readonly name: string;
  readonly passed: number;
  readonly failed: number;
  /** Ids of the checks that failed. */
  readonly failures: readonly string[];
  /** Ids of the checks that found a SHOULD unmet. */
  readonly warnings: readonly string[];
}

export interface ConformanceReport {
  readonly requirements: string;
  readonly passed: number;
  readonly failed: number;
  readonly scenarios: readonly ScenarioReport[];
}

/** Serves examples/everything, runs one revision's requirements against it, and stops it again. */
export declare function runConformance(requirements: "2025-11-25" | "2026-07-28"): Promise<ConformanceReport>;

/** The same with the example behind `meanwhile wrap`, over stdio. */
export declare function runConformanceThroughWrap(
  requirements: "2025-11-25" | "2026-07-28",
): Promise<ConformanceReport>;

/** The same with a server that asks for credentials, of a client that has an API key or an access token. */
export declare function runConformanceSignedIn(
  requirements: "2025-11-25" | "2026-07-28",
  credential: "key" | "token",
): Promise<ConformanceReport>;

/** Starts a server that prints its address to stderr, lets the suite judge it as `asked` says, and stops it again. */
export declare function judge(
  server: { readonly words: readonly string[]; readonly cwd?: string },
  asked: readonly string[],
): Promise<ConformanceReport>;
