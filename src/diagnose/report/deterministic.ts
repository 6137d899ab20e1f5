import type { Report } from "./report.ts";

/** A report that is the same for every run against the same server: without times, ids, ports and figures. */
export function toStable(report: Report): Report {
  return {
    ...(stable(report) as Report),
    startedAt: "1970-01-01T00:00:00.000Z",
    version: report.version,
    score: report.score,
    target: { ...(stable(report.target) as Report["target"]), tools: report.target.tools },
  };
}

function stable(value: unknown): unknown {
  if (typeof value === "string") return stableText(value);
  if (Array.isArray(value)) return value.map(stable);
  if (typeof value !== "object" || value === null) return value;
  const isMeasured = (value as { kind?: unknown }).kind === "measured";
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) => {
      if (key === "figures") return [];
      if (key === "durationMs") return [[key, 0]];
      if (isMeasured && key === "text") return [[key, String(inner).replaceAll(/\d+(?:[.,]\d+)*/g, "#")]];
      return [[key, stable(inner)]];
    }),
  );
}

function stableText(text: string): string {
  return text
    .replaceAll(/\b\d+(?:\.\d+)? ms\b/g, "# ms")
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g, "<time>")
    .replaceAll(/\b(127\.0\.0\.1|localhost|\[::1\]):\d+/g, "$1:<port>")
    .replaceAll(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, "<id>")
    .replaceAll(/\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{20,}\b/g, "<id>");
}
