// Projects that are made for a run, each with `echo text`. They lie where no packages are, so that every Meanwhile
// lends them its own.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";

const guests = 50;
const plain = { effects: '"read"', run: "({ text }) => ({ text })" };

/** `echo` is the command that is called; of how many it is one; and the project's config. */
const projects = {
  plain: { echo: plain, commands: 10 },
  later: { echo: { ...plain, run: "async ({ text }) => (await setImmediate(), { text })" }, commands: 10 },
  write: { echo: { ...plain, effects: '"write"' }, commands: 10 },
  hooked: { echo: plain, commands: 10, config: configWithHook() },
  many: { echo: plain, commands: 1_000 },
};

/** Makes them all; gives their folders by name. */
export function makeProjects(folder) {
  return Object.fromEntries(
    Object.entries(projects).map(([name, project]) => [name, makeProject(path.join(folder, name), project)]),
  );
}

/** Makes a project of so many command files, and returns its folder. */
export function makePlainProject(folder, commands, ending = "ts") {
  return makeProject(folder, { echo: plain, commands, ending });
}

function makeProject(folder, { echo, commands, config, ending = "ts" }) {
  writeCommand(folder, `echo/text.${ending}`, echo);
  for (let at = 1; at < commands; at++)
    writeCommand(folder, `group${Math.floor(at / 50)}/number${at}.${ending}`, plain);
  if (config !== undefined) writeFileSync(path.join(folder, "meanwhile.config.mjs"), config);
  return folder;
}

function writeCommand(folder, name, { effects, run }) {
  const file = path.join(folder, "commands", name);
  mkdirSync(path.dirname(file), { recursive: true });
  const text = `import { setImmediate } from "node:timers/promises";
import { defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Give a text back",
  input: z.object({ text: z.string() }),
  output: z.object({ text: z.string() }),
  effects: ${effects},
  run: ${run},
});
`;
  writeFileSync(file, text);
}

/** An `mcp` hook that registers so many tools, prompts and resources each. */
function configWithHook() {
  return `import { z } from "zod";

export default {
  mcp(server) {
    for (let at = 0; at < ${guests}; at++) {
      const about = { description: "By hand" };
      server.registerTool(\`guest_\${at}\`, { ...about, inputSchema: z.object({ text: z.string() }) }, ({ text }) => ({ content: [{ type: "text", text }] }));
      server.registerPrompt(\`guest_\${at}\`, about, () => ({ messages: [] }));
      server.registerResource(\`guest_\${at}\`, \`guest://\${at}\`, about, (uri) => ({ contents: [{ uri: uri.href, text: "" }] }));
    }
  },
};
`;
}
