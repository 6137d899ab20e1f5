import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { reservedDomains } from "../../command/discover.ts";
import { Exit, messageOf, UsageError } from "../../errors.ts";
import { createId } from "../../ids.ts";
import { type Home, homeAt } from "../../paths.ts";
import { findConfigFile } from "../../project/project.ts";
import { rememberMade } from "../../project/stored-project.ts";
import { operand, unknown } from "../completion/grammar.ts";
import type { Verb } from "../verb.ts";

export const verb: Verb = {
  description: "Write a first version of a command",
  flags: [],
  operands: [operand("<domain/name>", unknown, "e.g. hello/world → commands/hello/world.ts")],
  async run({ operands, flags, terminal }) {
    const words = checkName(operands[0] ?? "");
    const folder = path.resolve(flags.commands?.[0] ?? "commands");
    const file = path.join(folder, ...words.slice(0, -1), `${words.at(-1)}.ts`);
    if (existsSync(file)) throw new UsageError(`${file} exists already; choose another name, or edit it.`);
    const isFirst = !existsSync(folder) && flags.commands === undefined && findConfigFile(process.cwd()) === undefined;
    try {
      if (isFirst)
        makeProject(homeAt(process.env), folder, { name: path.relative(folder, file), text: template(words) });
      else writeNew(file, template(words));
    } catch (cause) {
      throw new UsageError(`Cannot write ${file}: ${messageOf(cause)}; go to a folder you may write.`, { cause });
    }
    const { colors } = terminal;
    const shown = path.relative(process.cwd(), file);
    terminal.say(
      `${colors.green("✓")} Wrote ${shown}\n  Run it      meanwhile ${words.join(" ")} World\n  As a tool   ${words.join("_").replaceAll("-", "_")}, in every MCP client that is connected\n`,
    );
    terminal.print(`${shown}\n`);
    return Exit.Ok;
  },
};

function writeNew(file: string, text: string): void {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/**
 * The folder is there at once, with its first command, and known to be ours: a session that is connected here takes up
 * no other.
 */
function makeProject(
  home: Home,
  folder: string,
  { name, text }: { readonly name: string; readonly text: string },
): void {
  const aside = `${folder}.${createId()}`;
  try {
    writeNew(path.join(aside, name), text);
    remember(home, folder, aside);
    renameSync(aside, folder);
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
}

/** Without a note, sessions that are connected have to be started again. */
function remember(home: Home, folder: string, aside: string): void {
  try {
    rememberMade(home, folder, aside);
  } catch {
    // The home cannot be written, which is reported by whoever needs it.
  }
}

function checkName(name: string): string[] {
  const words = name.split("/");
  const isUsable = words.length >= 2 && words.every((word) => /^[A-Za-z][A-Za-z0-9_-]*$/.test(word));
  if (!isUsable)
    throw new UsageError(
      `"${name}" is not a name for a command; write domain/name, e.g. hello/world, with letters, digits, - and _.`,
    );
  if (reservedDomains.has(words[0] ?? ""))
    throw new UsageError(`"${words[0]}" is a word of Meanwhile's own; choose another domain.`);
  return words;
}

function template(words: readonly string[]): string {
  const title = words.join(" ");
  return `import { defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Say what ${title} does, in one line",
  input: z.object({
    name: z.string().describe("Whom to greet"),
    times: z.number().int().min(1).max(10).default(3).describe("How often"),
  }),
  output: z.object({ greeting: z.string() }),
  effects: "read",
  async run({ name, times }, task) {
    task.announce(\`Greeting \${name}\`);
    for (let done = 1; done <= times; done++) {
      task.signal.throwIfAborted();
      task.progress({ done, total: times, message: \`Greeting \${done} of \${times}\` });
    }
    return { greeting: \`Hello, \${name}!\` };
  },
});
`;
}
