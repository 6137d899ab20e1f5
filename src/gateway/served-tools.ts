import type { UpstreamConfig } from "../project/upstream-config.ts";

/** Which of an upstream's tools are served, and what is said of them beside what they say themselves. */
export interface ToolChoice {
  isServed(tool: string): boolean;
  isLong(tool: string): boolean;
  mayRerun(tool: string): boolean;
}

export function chooseTools({ allow, deny, long, rerun }: UpstreamConfig): ToolChoice {
  const allowed = allow === undefined ? () => true : anyOf(allow);
  const denied = anyOf(deny ?? []);
  return {
    isServed: (tool) => allowed(tool) && !denied(tool),
    isLong: anyOf(long ?? []),
    mayRerun: anyOf(rerun ?? []),
  };
}

/** `*` stands for any letters. */
function anyOf(patterns: readonly string[]): (name: string) => boolean {
  const expressions = patterns.map(
    (pattern) =>
      new RegExp(
        `^${pattern
          .split("*")
          .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"))
          .join(".*")}$`,
        "s",
      ),
  );
  return (name) => expressions.some((expression) => expression.test(name));
}
