import type { ProbeSession } from "../../wire/probe-session.ts";
import type { Probe } from "../probe.ts";

/** Sessions over HTTP ended with 2026-07-28. */
export const noSessions = "The server gives out no sessions.";

/** A conversation in the revision that may have sessions; undefined where the server speaks none. */
export async function openLegacy(probe: Probe): Promise<ProbeSession | undefined> {
  const { legacy } = probe.facts;
  return legacy === undefined ? undefined : await probe.open({ revision: legacy.revision });
}
