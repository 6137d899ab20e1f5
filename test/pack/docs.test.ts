import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { discover } from "../../src/command/discover.ts";
import { loadEntry } from "../../src/command/load-entry.ts";

const root = path.resolve(import.meta.dirname, "../..");

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
}

/** `path, errors: [{ path, reason }], facts: {}` */
function shapeOf({ properties = {} }: Schema): string {
  return Object.entries(properties)
    .map(([name, schema]) => name + insideOf(schema))
    .join(", ");
}

function insideOf({ type, properties, items }: Schema): string {
  if (type === "array") return items?.properties === undefined ? ": []" : `: [{ ${shapeOf(items)} }]`;
  if (type !== "object") return "";
  return properties === undefined ? ": {}" : `: { ${shapeOf({ properties })} }`;
}

/** `path, recursive?` */
function takesOf({ properties = {}, required = [] }: Schema): string {
  return Object.keys(properties)
    .map((name) => (required.includes(name) ? name : `${name}?`))
    .join(", ");
}

test("docs/pack.md says of every command what it takes and what it gives", async () => {
  const entries = await Promise.all(discover(path.join(root, "commands")).map(loadEntry));
  const expected = entries.map((entry) => {
    if (!("command" in entry)) throw new Error(entry.text);
    const { inputSchema, outputSchema, long } = entry.command;
    return [
      `${entry.toolName}${long ? " (long)" : ""}`,
      takesOf(inputSchema),
      outputSchema === undefined ? "the settings" : shapeOf(outputSchema),
    ];
  });
  const page = readFileSync(path.join(root, "docs/pack.md"), "utf8");
  const [, section = ""] = /^## What each takes and gives$([\s\S]*?)^## /m.exec(page) ?? [];
  const rows = [...section.matchAll(/^\| (`.*)\|$/gm)].map(([, row = ""]) =>
    row.split(" | ").map((cell) => cell.replaceAll("`", "").trim()),
  );
  expect(rows).toEqual(expected);
});
