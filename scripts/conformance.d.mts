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
