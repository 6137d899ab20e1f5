import { maxFaults, textsOf } from "../../asking/security/texts.ts";
import { type Check, type Fault, failed, passed } from "../../check.ts";
import { secretPatterns } from "../../text.ts";

export const check: Check = {
  id: "security/secret-in-text",
  question: "Are there no secrets in what everybody may list?",
  severity: "major",
  why: "Names, descriptions and schemas are sent to every caller, to the model's maker and into logs. A key in a default or an example belongs to all of them.",
  remedy:
    "Take it out and have it replaced where it was made, because it is known now. Use a value that cannot be real, such as YOUR_API_KEY.",
  source: "MCP 2025-11-25 and 2026-07-28, Tools: Security Considerations",
  isStatic: true,
  async run(probe) {
    const faults: Fault[] = [];
    const seen = new Set<string>();
    for (const { of, at, text } of textsOf(probe.facts)) {
      const name = findSecret(text);
      if (name === undefined || seen.has(of)) continue;
      seen.add(of);
      const evidence = [probe.received(`${at}: ${name}, ${text.length} characters of text around it are not shown`)];
      faults.push({
        subject: probe.show(of, 120),
        title: `The text of ${probe.show(of, 80)} holds what looks like ${name}`,
        evidence,
      });
      if (faults.length === maxFaults) break;
    }
    return faults.length === 0 ? passed() : failed(faults);
  },
};

/** What kind of secret it is; undefined for what stands for one. */
function findSecret(text: string): string | undefined {
  for (const { name, pattern } of secretPatterns) {
    const [found] = pattern.exec(text) ?? [];
    if (found !== undefined && !isPlaceholder(found)) return name;
  }
  return undefined;
}

/** Examples: words that say so, one letter over and over, or too few different ones. */
function isPlaceholder(found: string): boolean {
  if (
    /example|sample|your|my[_-]|xxx|placeholder|dummy|fake|changeme|redacted|abc|123456|<|\{|\*{2}|\.{3}|…/i.test(found)
  )
    return true;
  const [, password] = /:\/\/[^:]*:([^@]*)@/.exec(found) ?? [];
  if (password !== undefined)
    return /^(?:pass(?:word|wd)?|pwd|secret|postgres|root|admin|user|test|guest|\$.*|%.*|)$/i.test(password);
  return !/PRIVATE KEY/.test(found) && new Set(found.replace(/^[^_-]*[_-]/, "")).size < 10;
}
