import { findHidden } from "../../asking/security/hidden.ts";
import { maxFaults, textsOf } from "../../asking/security/texts.ts";
import { type Check, type Fault, failed, passed } from "../../check.ts";

export const check: Check = {
  id: "security/hidden-text",
  question: "Can a person see all that the model reads?",
  severity: "major",
  why: "Characters that are not drawn (tags, zero-width marks, direction overrides, terminal escapes) carry orders to the model that the person who approves the tool never sees.",
  remedy:
    "Take these characters out of the text. If you did not put them there, find out who did before anybody uses the server.",
  source: "MCP Security Best Practices; Unicode Technical Report 36",
  isStatic: true,
  async run(probe) {
    const faults: Fault[] = [];
    const seen = new Set<string>();
    for (const { of, at, text } of textsOf(probe.facts)) {
      const hidden = findHidden(text);
      if (hidden === undefined || seen.has(of)) continue;
      seen.add(of);
      faults.push({
        subject: probe.show(of, 120),
        title: `The text of ${probe.show(of, 80)} holds ${hidden.what}`,
        severity: hidden.severity,
        evidence: [
          probe.received(`${at}: ${hidden.escaped}`),
          ...(hidden.message === undefined
            ? []
            : [probe.measured(`The hidden characters spell: ${probe.show(hidden.message)}`)]),
        ],
      });
      if (faults.length === maxFaults) break;
    }
    return faults.length === 0 ? passed() : failed(faults);
  },
};
