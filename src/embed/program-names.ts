/** What makes a name that can be typed, that is a folder and a variable everywhere, and that is nobody else's. */
const pattern = /^[a-z](?:[a-z0-9]|-(?=[a-z0-9])){0,39}$/;

/** Those who keep a folder of this name in the home of every user, or read `<NAME>_HOME` or `<NAME>_DEBUG`. */
const othersHomes = [
  ...["ansible", "aws", "azure", "bun", "cache", "cargo", "claude", "codex", "config", "conda", "cursor", "deno"],
  ...["docker", "dotnet", "electron", "gemini", "git", "gnupg", "gradle", "java", "kube", "local", "m2", "maven"],
  ...["mozilla", "node", "npm", "nvm", "pip", "pnpm", "profile", "python", "rustup", "ssh", "vim", "vscode", "yarn"],
];

/** Functions of zsh's completion, which ours would take the place of. */
const othersFunctions = ["arguments", "complete", "describe", "files", "main", "options", "values"];

/** What Windows takes for a device. */
const device = /^(?:con|prn|aux|nul|com\d|lpt\d)$/;

/** Throws a TypeError for a name that a program could not have. */
export function checkProgramName(name: unknown): asserts name is string {
  if (typeof name !== "string" || !pattern.test(name))
    throw new TypeError(
      `createCli: name must be up to 40 lower-case letters, digits and single hyphens, beginning with a letter, not ${JSON.stringify(name)}.`,
    );
  if (name === "meanwhile" || [...othersHomes, ...othersFunctions].includes(name) || device.test(name))
    throw new TypeError(
      `createCli: name must not be "${name}", which is another program's: both would use ~/.${name} and ${name.toUpperCase()}_HOME; choose another.`,
    );
}
