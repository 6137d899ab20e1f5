import { maxFaults, textsOf } from "../../asking/security/texts.ts";
import { type Check, type Fault, failed, passed } from "../../check.ts";

// What no honest description says. Words like "important", "always" or "must" are not among them.
const orders: readonly { readonly what: string; readonly pattern: RegExp }[] = [
  {
    what: "tells the model to forget its instructions",
    pattern:
      /\b(?:ignore|disregard|forget|override)\s{1,5}(?:all\s{1,5}|any\s{1,5})?(?:of\s{1,5})?(?:the\s{1,5}|your\s{1,5}|my\s{1,5})?(?:previous|prior|above|earlier|preceding|system)\s{1,5}(?:instructions?|prompts?|messages?|rules)\b/i,
  },
  {
    what: "tells the model to keep something from its user",
    pattern:
      /\b(?:do\s{1,5}not|don't|never|must\s{1,5}not|without)\s{1,5}(?:tell|telling|inform|informing|mention(?:ing)?\s{1,5}(?:this|it|that)\s{1,5}to|reveal(?:ing)?\s{1,5}(?:this|it|that)\s{1,5}to|notify|notifying|alert|alerting|show(?:ing)?\s{1,5}(?:this|it|that)\s{1,5}to)\s{1,5}(?:the\s{1,5}|your\s{1,5}|any\s{1,5})?(?:users?|humans?)\b(?!['’]s)/i,
  },
  {
    what: "imitates the marks of a system's own messages",
    pattern:
      /<\/?(?:IMPORTANT|SYSTEM|system|secret|SECRET)>|<\|(?:im_start|im_end|system|endoftext)\|>|\[\/?INST\]|<<SYS>>/,
  },
  {
    what: "sends the model to files with secrets",
    pattern:
      /~\/\.(?:ssh|aws|cursor|gnupg|kube)\/|\bid_rsa\b|\bid_ed25519\b|\.aws\/credentials|\.cursor\/mcp\.json|claude_desktop_config\.json|\/etc\/(?:passwd|shadow)\b/,
  },
  {
    what: "gives orders about other servers' tools",
    pattern:
      /\b(?:when(?:ever)?|before|after|instead\s{1,5}of)\s{1,5}(?:you\s{1,5}|the\s{1,5}user\s{1,5})?(?:us(?:e|es|ing)|call(?:s|ing)?|invok(?:e|es|ing))\b[^.\n]{0,80}\b(?:of|from|on|by)\s{1,5}(?:an)?other\s{1,5}(?:MCP\s{1,5})?servers?\b/i,
  },
  { what: "has a comment that a rendered page does not show", pattern: /<!--(?:(?!-->)[\s\S]){8,2000}-->/ },
  {
    what: "holds a long row of encoded data",
    pattern:
      /(?<![A-Za-z0-9+/=,])(?=[A-Za-z0-9+/]{0,160}\d)(?=[A-Za-z0-9+/]{0,160}[a-z])(?=[A-Za-z0-9+/]{0,160}[A-Z])[A-Za-z0-9+/]{160,4000}={0,2}/,
  },
];

export const check: Check = {
  id: "security/instructing-text",
  question: "Do descriptions describe, and nothing else?",
  severity: "minor",
  why: "A model obeys what it reads. A description that gives it orders beyond its own tool (tool poisoning) makes it leak files or deceive its user.",
  remedy:
    "Say what the tool does, what it takes and what it gives. Take out whatever tells the model what to hide, to read elsewhere or to do with other tools.",
  source: "MCP 2025-11-25 and 2026-07-28, Tools: descriptions are untrusted; Security Best Practices",
  isStatic: true,
  async run(probe) {
    const faults: Fault[] = [];
    const seen = new Set<string>();
    for (const { of, at, text } of textsOf(probe.facts)) {
      for (const { what, pattern } of orders) {
        const place = text.search(pattern);
        if (place === -1 || seen.has(of) || faults.length === maxFaults) continue;
        seen.add(of);
        const evidence = [probe.received(`${at}: …${text.slice(Math.max(0, place - 60), place + 160)}`)];
        faults.push({ subject: probe.show(of, 120), title: `The text of ${probe.show(of, 80)} ${what}`, evidence });
      }
    }
    return faults.length === 0 ? passed() : failed(faults);
  },
};
