import { dependencyVersions, oldestNode } from "./dependency-versions.ts";
import { firstCommand, firstTest } from "./first-command.ts";
import type { NewFiles } from "./made-folder.ts";
import { toProgramName, toServerName } from "./package-name.ts";

/** What the files of a new project need to know. */
export interface ProjectFacts {
  /** As in package.json. */
  readonly packageName: string;
  /** The version of Meanwhile in package.json, or `file:` and the path of a copy. */
  readonly meanwhile: string;
}

const { zod, ...tools } = dependencyVersions;

/** The files of a project that is served from its own folder. */
export function projectFiles({ packageName, meanwhile }: ProjectFacts): NewFiles {
  return {
    "package.json": toJson({
      name: packageName,
      private: true,
      type: "module",
      engines: { node: oldestNode },
      scripts: { start: "meanwhile serve --http", test: "node --test", types: "tsc --noEmit" },
      dependencies: { meanwhile, zod },
      devDependencies: tools,
    }),
    "tsconfig.json": tsconfig("commands", "test", "meanwhile.config.ts"),
    ".gitignore": "node_modules/\n",
    "README.md": readme(packageName),
    "test/report-build.test.ts": firstTest,
    "meanwhile.config.ts": `import { defineConfig } from "meanwhile";

export default defineConfig({ name: "${toServerName(packageName)}" });
`,
    "commands/report/build.ts": firstCommand,
  };
}

/** The files of a package to publish: a program under its own name, with these commands. */
export function packageFiles({ packageName, meanwhile }: ProjectFacts): NewFiles {
  const program = toProgramName(packageName);
  return {
    "package.json": toJson({
      name: packageName,
      version: "0.1.0",
      description: "Commands for the terminal and for MCP clients",
      type: "module",
      engines: { node: oldestNode },
      bin: { [program]: `bin/${program}.js` },
      files: ["bin", "dist"],
      scripts: {
        build: `node --eval "fs.rmSync('dist', { recursive: true, force: true })" && tsc --project tsconfig.build.json`,
        prestart: "npm run build",
        start: `node bin/${program}.js serve --http`,
        test: "node --test",
        types: "tsc --noEmit",
        prepack: "npm run build",
      },
      dependencies: { meanwhile, zod },
      devDependencies: tools,
    }),
    "tsconfig.json": tsconfig("commands", "test"),
    "tsconfig.build.json": `{
  "extends": "./tsconfig.json",
  "compilerOptions": { "noEmit": false, "rootDir": ".", "outDir": "dist", "rewriteRelativeImportExtensions": true },
  "include": ["commands"],
  "exclude": ["**/*.test.ts"]
}
`,
    ".gitignore": "node_modules/\ndist/\n*.tgz\n",
    "README.md": packageReadme(packageName, program),
    [`bin/${program}.js`]: `#!/usr/bin/env node
import { createCli } from "meanwhile";
import manifest from "../package.json" with { type: "json" };

// What \`npm run build\` makes of them: Node strips no types from what is installed.
const commands = new URL("../dist/commands/", import.meta.url);

await createCli({ name: "${program}", version: manifest.version, summary: manifest.description, commands }).run();
`,
    "test/report-build.test.ts": firstTest,
    "commands/report/build.ts": firstCommand,
  };
}

function toJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** What an editor and \`tsc\` need to see the code as Node does, which runs it without a build. */
function tsconfig(...include: readonly string[]): string {
  return `{
  "compilerOptions": {
    "target": "es2024",
    "lib": ["es2024"],
    "module": "nodenext",
    "types": ["node"],
    "strict": true,
    "noUncheckedIndexedAccess": true,
    "verbatimModuleSyntax": true,
    "erasableSyntaxOnly": true,
    "allowImportingTsExtensions": true,
    "noEmit": true
  },
  "include": [${include.map((name) => `"${name}"`).join(", ")}]
}
`;
}

function readme(packageName: string): string {
  return `# ${packageName}

\`commands/report/build.ts\` is \`report build\` in the terminal and the tool \`report_build\` in MCP clients.

\`\`\`sh
npm install
npm test     # what the commands do
npm start    # serves them on http://127.0.0.1:7337/mcp
\`\`\`

\`\`\`sh
npx --no meanwhile report build Q3   # one of them, here
npx --no meanwhile new report/send   # another one
npx --no meanwhile setup             # the MCP hosts on this machine; name one to add this server to it
\`\`\`
`;
}

function packageReadme(packageName: string, program: string): string {
  return `# ${packageName}

\`\`\`sh
npm install --global ${packageName}
${program} report build Q3
${program} setup   # the MCP hosts on this machine; name one to add this server to it
\`\`\`

## To work on it

\`commands/report/build.ts\` is \`report build\` in the terminal and the tool \`report_build\` in MCP clients.

\`\`\`sh
npm install
npm test      # what the commands do
npm start     # builds, and serves them on http://127.0.0.1:7337/mcp
npm publish   # builds, and publishes bin and dist
\`\`\`
`;
}
