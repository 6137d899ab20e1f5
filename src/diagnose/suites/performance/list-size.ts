import { type Check, failed, passed, skipped } from "../../check.ts";

const maxBytes = 100_000;
const bytesPerToken = 4;
/** A quarter of what the larger models hold. */
const majorTokens = 50_000;

export const check: Check = {
  id: "performance/list-size",
  question: "Do the descriptions of all tools leave room in the model's context?",
  severity: "minor",
  why: "Hosts put every tool's name, description and schema in front of the model at each turn. What they fill is paid for each time and missing for the work.",
  remedy:
    "Shorten descriptions, share or drop schema parts that no caller needs, and split rarely used tools into a server of their own.",
  source: "measured: 100 kB of JSON are about 25,000 tokens",
  isGentle: true,
  run: async (probe) => {
    const session = await probe.open({ capabilities: {} });
    const { items, problem } = await session.list("tools/list", "tools");
    if (items.length === 0)
      return skipped(problem === undefined ? "The server has no tools." : "The tools could not be listed.");
    const sizes = items.map((item) => ({
      name: probe.show(String(item.name), 60),
      bytes: Buffer.byteLength(JSON.stringify(item)),
    }));
    const bytes = sizes.reduce((sum, item) => sum + item.bytes, 0);
    const figures = { tools: items.length, bytes, tokens: Math.round(bytes / bytesPerToken) };
    const total = probe.measured(
      `${items.length} tools, ${Math.round(bytes / 1000)} kB, about ${figures.tokens} tokens`,
    );
    if (bytes <= maxBytes) return passed(undefined, { evidence: [total], data: { figures } });
    const largest = sizes.toSorted((a, b) => b.bytes - a.bytes).slice(0, 3);
    const named = largest.map(({ name, bytes: own }) => `${name}: ${toKb(own)} kB`);
    // Where all are alike, none of them is the one to shorten.
    const isUneven = (largest[0]?.bytes ?? 0) > (bytes / items.length) * 1.5;
    const evidence = [
      total,
      ...(isUneven ? named : [`each about ${toKb(bytes / items.length)} kB`]).map((text) => probe.measured(text)),
    ];
    const severity = figures.tokens >= majorTokens ? "major" : "minor";
    return failed({ title: "The list of tools is larger than 100 kB", severity, evidence }, { figures });
  },
};

function toKb(bytes: number): number {
  return bytes < 10_000 ? Math.round(bytes / 100) / 10 : Math.round(bytes / 1000);
}
