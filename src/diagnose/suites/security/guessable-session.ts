import { noSessions, openLegacy } from "../../asking/security/legacy-session.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";

/** Fewer can be tried out. */
const enoughBits = 64;

export const check: Check = {
  id: "security/guessable-session",
  question: "Are session ids such that nobody can guess them?",
  severity: "major",
  why: "Whoever guesses the id of a running session can read its messages and send in its name, where nothing else tells callers apart.",
  remedy:
    "Make each id from at least 128 random bits of the system's generator, such as a random UUID; no counters, times or pointers.",
  source: "MCP 2025-11-25, Transports: Session Management; CVE-2025-6515",
  transport: "http",
  async run(probe) {
    const ids: string[] = [];
    for (let count = 0; count < 3; count++) {
      const id = (await openLegacy(probe))?.sessionId;
      if (id === undefined) return skipped(noSessions);
      ids.push(id);
    }
    const evidence = (what: string) => [probe.measured(`Three ids, made one after the other: ${what}.`)];
    if (new Set(ids).size < ids.length)
      return failed({
        title: "Two sessions have the same id",
        severity: "blocker",
        evidence: evidence("two are the same"),
      });
    if (ids.every(isTimeBased))
      return failed({
        title: "Session ids are made from the time and the machine's address (UUID version 1)",
        evidence: evidence("all are UUIDs of version 1"),
      });
    const bits = differingBits(ids);
    if (bits >= enoughBits) return passed();
    return failed({
      title: "Session ids differ in so little that they can be guessed",
      evidence: evidence(`they differ in at most ${Math.floor(bits)} bits`),
    });
  },
};

function isTimeBased(id: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-1[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i.test(id);
}

/** What could be random: the places in which the ids differ, judged by the characters that stand there. */
function differingBits(ids: readonly string[]): number {
  const length = Math.max(...ids.map((id) => id.length));
  const places = Array.from({ length }, (_none, at) => ids.map((id) => id.charAt(at))).filter(
    (letters) => new Set(letters).size > 1,
  );
  const all = places.flat().join("");
  const alphabet = /^\d*$/.test(all) ? 10 : /^[\da-f]*$/i.test(all) ? 16 : /^[\da-z]*$|^[\dA-Z]*$/.test(all) ? 36 : 62;
  return places.length * Math.log2(alphabet);
}
