/** Patterns of tool names: `*` stands for any characters, also none. Upper and lower case differ. */

/** The characters of a tool's name in MCP, and single stars. */
const patternForm = /^(?:[A-Za-z0-9_./-]|\*(?!\*)){1,200}$/;

export function isToolPattern(value: unknown): value is string {
  return typeof value === "string" && patternForm.test(value);
}

/** What `isToolPattern` accepts, for error messages. */
export const toolPatternForm = "a tool's name, or a pattern such as report_* in which * stands for any characters";

/** Takes time in proportion to the lengths, whatever the pattern. */
export function matchesTool(pattern: string, toolName: string): boolean {
  const [first = "", ...others] = pattern.split("*");
  const last = others.pop();
  if (last === undefined) return toolName === pattern;
  if (!toolName.startsWith(first) || !toolName.endsWith(last)) return false;
  const end = toolName.length - last.length;
  let at = first.length;
  for (const part of others) {
    const found = toolName.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= end;
}

/**
 * Negative where `a` is more specific than `b`, 0 where neither is. A name without a star comes first, then the pattern
 * with more characters before its first star, then the one with more characters in all.
 */
export function bySpecificity(a: string, b: string): number {
  return prefixLength(b) - prefixLength(a) || literalLength(b) - literalLength(a);
}

function prefixLength(pattern: string): number {
  const star = pattern.indexOf("*");
  return star === -1 ? Number.MAX_SAFE_INTEGER : star;
}

function literalLength(pattern: string): number {
  return pattern.replaceAll("*", "").length;
}
