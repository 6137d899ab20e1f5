import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { toTimestamp } from "../../clock.ts";
import type { Report } from "../../diagnose/report/report.ts";
import { ensureHome, type Home } from "../../paths.ts";
import { keptReports } from "./report-output.ts";

/**
 * Reports of diagnoses that are kept without being asked for: in the home, readable by its user alone, the last fifty.
 */

const ours = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z-[a-z0-9-]*\.json$/;

/** Writes a report among those that are kept, lets the oldest go, and says where it is. */
export async function keepReport(home: Home, report: Report, now: number): Promise<string> {
  const { toJson } = await import("../../diagnose/formats/json-report.ts");
  ensureHome(home);
  mkdirSync(home.reportsFolder, { recursive: true, mode: 0o700 });
  const file = freeName(home.reportsFolder, report, now);
  writeFileSync(file, toJson(report), { mode: 0o600, flag: "wx" });
  for (const name of namesIn(home.reportsFolder).slice(0, -keptReports))
    rmSync(path.join(home.reportsFolder, name), { force: true });
  return file;
}

/** Those that are kept, oldest first. */
export function listKept({ reportsFolder }: Home): string[] {
  return namesIn(reportsFolder).map((name) => path.join(reportsFolder, name));
}

/** Two that end in the same millisecond are a millisecond apart. */
function freeName(folder: string, { target }: Report, now: number): string {
  const subject = (target.server?.name ?? target.name)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "")
    .slice(0, 40);
  const known = new Set(namesIn(folder).map(timeOf));
  let at = now;
  while (known.has(stamp(at))) at++;
  return path.join(folder, `${stamp(at)}-${subject}.json`);
}

function stamp(ms: number): string {
  return toTimestamp(ms).replaceAll(":", "-");
}

function timeOf(name: string): string {
  return name.slice(0, "2026-01-01T00-00-00.000Z".length);
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => ours.test(name))
      .sort();
  } catch {
    return [];
  }
}
