import {
  cameBack,
  credentialsOf,
  knockAsNobody,
  placeOf,
  secretNamesIn,
  urlOf,
  wentOut,
} from "../../asking/security/door.ts";
import { type Check, failed, passed } from "../../check.ts";

const who = {
  loopback: "every program of every user on this machine",
  private: "everybody on its network",
  public: "everybody on the internet",
};

export const check: Check = {
  id: "security/no-credentials",
  question: "Does the server refuse callers without credentials?",
  severity: "major",
  why: "Whoever can reach the address can list and call every tool, with the rights of the server.",
  remedy:
    "Answer requests without a valid token with 401, before the message is read. A server for one person on one machine can speak stdio instead.",
  source: "MCP 2025-11-25 and 2026-07-28, Authorization; Security Best Practices",
  transport: "http",
  isForLocked: true,
  async run(probe) {
    const target = urlOf(probe);
    const place = placeOf(target);
    const hasCredentials = Object.keys(credentialsOf(target.headers)).length + secretNamesIn(target.url).length > 0;
    const { isOpen, answer } = await knockAsNobody(probe);
    if (!isOpen) return passed();
    const evidence = [wentOut(probe, "a handshake and tools/list without credentials"), cameBack(probe, answer)];
    if (hasCredentials) {
      const severity = place === "public" ? "blocker" : "major";
      return failed({
        title: `The server lets in ${who[place]}: it works without the credentials that were given`,
        severity,
        evidence,
      });
    }
    const onlyReads = probe.facts.tools.every(({ annotations }) => annotations.readOnlyHint === true);
    const severity =
      place === "loopback" || (place === "public" && onlyReads) ? "info" : place === "public" ? "major" : "minor";
    return failed({ title: `The server lets in ${who[place]}: it asks for no credentials`, severity, evidence });
  },
};
