import type { Issue, JsonSchema } from "./schema.ts";
import { closest } from "./suggest.ts";

/** What is wrong with a command's arguments, in one sentence a model or a person can act on. */
export function describeArguments(
  name: string,
  issues: readonly Issue[],
  input: unknown,
  unknown: readonly string[],
): string {
  const described = issues.map((issue) =>
    isMissing(issue, input) ? `\`${issue.field}\` is required` : describeIssue(issue),
  );
  return [`Invalid argument${issues.length === 1 ? "" : "s"} for ${name}: ${described.join("; ")}.`, ...unknown].join(
    " ",
  );
}

function isMissing(issue: Issue, input: unknown): boolean {
  return (
    /^[\w$-]+$/.test(issue.field) && (input as Record<string, unknown> | null | undefined)?.[issue.field] === undefined
  );
}

/** One thing that is wrong, with the field it is about. */
export function describeIssue(issue: Issue): string {
  return issue.field === "" ? issue.text : `\`${issue.field}\`: ${issue.text}`;
}

/** One sentence for each argument the schema does not know. */
export function unknownArguments(schema: JsonSchema, input: unknown): string[] {
  if (
    typeof input !== "object" ||
    input === null ||
    schema.additionalProperties !== undefined ||
    schema.patternProperties !== undefined ||
    schema.anyOf !== undefined ||
    schema.allOf !== undefined
  )
    return [];
  const properties = (schema.properties ?? {}) as Record<string, unknown>;
  const unknown: string[] = [];
  for (const key of Object.keys(input)) {
    if (Object.hasOwn(properties, key)) continue;
    const known = Object.keys(properties);
    const guess = closest(key, known);
    unknown.push(
      `Unknown argument \`${key}\`${guess === undefined ? (known.length === 0 ? "; it takes none." : `; known: ${known.join(", ")}.`) : `; did you mean \`${guess}\`?`}`,
    );
  }
  return unknown;
}
