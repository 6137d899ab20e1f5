import type { ConformanceReport } from "./conformance.mjs";

/** One server of the fixture's, judged by one revision's requirements. */
export declare function judgeEmbedded(
  server: "v1" | "v2" | "everything",
  how: "plain" | "one" | "factory",
  requirements: "2025-11-25" | "2026-07-28",
): Promise<ConformanceReport>;

/** What a wrapped server fails, or leaves out, of what the same server passes when its SDK serves it. */
export declare function lostBy(wrapped: ConformanceReport, plain: ConformanceReport): readonly string[];

/** The checks of tasks that a server has passed. */
export declare function tasksPassedBy(report: ConformanceReport): number;
