import { existsSync } from "node:fs";
import path from "node:path";
import { reservedDomains } from "../../command/names.ts";
import { Exit, messageOf, UsageError } from "../../errors.ts";
import { homeAt, packageFolder } from "../../paths.ts";
import { thisProgram } from "../../program/program.ts";
import { findConfigFile } from "../../project/project.ts";
import { operand, unknown } from "../completion/grammar.ts";
import { makeCommandFolder, writeNew } from "../init/made-folder.ts";
import { tellNext } from "../screens/next-steps.ts";
import type { Verb } from "../verb.ts";

export const verb: Verb = {
  description: "Write a first version of a command",
  flags: [],
  operands: [operand("<domain/name>", unknown, "e.g. hello/world → commands/hello/world.ts")],
  async run({ operands, flags, terminal, context: { cwd, env } }) {
    const words = checkName(operands[0] ?? "");
    const folder = path.resolve(cwd, flags.commands?.[0] ?? "commands");
    const file = path.join(folder, ...words.slice(0, -1), `${words.at(-1)}.ts`);
    if (existsSync(file)) throw new UsageError(`${file} exists already; choose another name, or edit it.`);
    const isFirst = !existsSync(folder) && flags.commands === undefined && findConfigFile(cwd) === undefined;
    try {
      if (isFirst) makeCommandFolder(homeAt(env), folder, { [path.relative(folder, file)]: template(words) });
      else writeNew(file, template(words));
    } catch (cause) {
      throw new UsageError(`Cannot write ${file}: ${messageOf(cause)}; go to a folder you may write.`, { cause });
    }
    const shown = path.relative(cwd, file);
    tellNext(terminal, `Wrote ${shown}`, [
      ["Run it", `${typedHere(cwd)} ${words.join(" ")} World`],
      ["As a tool", `${words.join("_").replaceAll("-", "_")}, in every MCP client that is connected`],
    ]);
    terminal.print(`${shown}\n`);
    return Exit.Ok;
  },
};

/** What is installed in the project alone is found by npx, and by no shell. */
function typedHere(cwd: string): string {
  const isProjects = packageFolder().startsWith(path.join(cwd, "node_modules", path.sep));
  return isProjects ? `npx --no ${thisProgram.name}` : thisProgram.name;
}

function checkName(name: string): string[] {
  const words = name.split("/");
  const isUsable = words.length >= 2 && words.every((word) => /^[A-Za-z][A-Za-z0-9_-]*$/.test(word));
  if (!isUsable)
    throw new UsageError(
      `"${name}" is not a name for a command; write domain/name, e.g. hello/world, with letters, digits, - and _.`,
    );
  if (reservedDomains.has(words[0] ?? ""))
    throw new UsageError(`"${words[0]}" is a word of ${thisProgram.title}'s own; choose another domain.`);
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
