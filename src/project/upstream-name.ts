/** What an upstream is called where nobody has named it: by its package, its file or its host. */

/** Programs that run another one, which is named behind them. */
const runners = new Set(
  "npx bunx pnpx pnpm yarn npm bun deno node tsx ts-node uvx uv pipx python python3 py cmd".split(" "),
);
/** What they are told first. */
const runnerWords = new Set("dlx exec run x tool start --from --package -p -m /c npx bunx uvx".split(" "));
/** What follows is no name: it is a program by itself, and may hold anything. */
const codeFlags = new Set(["-e", "--eval", "-c", "--print"]);
/** Names that say nothing: the folder above, or the scope, says more. */
const bare = new Set(["", "index", "server", "main", "cli", "bin", "dist", "build", "src", "lib", "app", "mcp"]);

export const maxUpstreamName = 32;

/** Letters, digits, - and _. */
export function isUpstreamName(name: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(name) && name.length <= maxUpstreamName;
}

/** A name that fits, made of any words. */
export function toUpstreamName(words: string): string {
  const fitting = words
    .replaceAll(/[^A-Za-z0-9_-]+/g, "-")
    .replaceAll(/^[-_]+|[-_]+$/g, "")
    .slice(0, maxUpstreamName);
  return fitting === "" ? "server" : fitting;
}

/** `https://mcp.linear.app/mcp` is linear. An IP address is its own name: `127-0-0-1`. */
export function nameOfUrl(url: string): string {
  const host = /^https?:\/\/(?:[^/?#]*@)?(\[[^\]]*\]|[^/:?#]*)/i.exec(url)?.[1] ?? "";
  if (host.startsWith("[") || /^[\d.]*$/.test(host)) return toUpstreamName(host);
  const labels = host.split(".").filter((label) => !["mcp", "api", "www"].includes(label.toLowerCase()));
  const named = labels.length > 1 ? labels.at(-2) : labels[0];
  return toUpstreamName(named ?? host);
}

/** `npx -y @scope/server-foo@1` is foo, `uvx mcp-server-git` is git. */
export function nameOfCommand([command = "", ...args]: readonly string[]): string {
  const program = lastPart(command).replace(/\.(?:exe|cmd|bat)$/i, "");
  if (program === "docker" || program === "podman") return toUpstreamName(shorten(imageIn(args) ?? program));
  if (!runners.has(program)) return toUpstreamName(shorten(program));
  const said = args.find((word) => !runnerWords.has(word) && !word.startsWith("-"));
  const isCode = args.slice(0, args.indexOf(said ?? "")).some((word) => codeFlags.has(word));
  return toUpstreamName(said === undefined || isCode ? program : shorten(said));
}

function imageIn(args: readonly string[]): string | undefined {
  return args.find((word) => /^[\w.-]+(?:\/[\w.-]+)+(?::[\w.-]+)?$/.test(word))?.replace(/:[\w.-]+$/, "");
}

/** The part of a path or a package's name that says the most. */
function shorten(word: string): string {
  const parts = word.replace(/(?<=.)@[^/\\]*$/, "").split(/[\\/]/);
  const stems = parts.map((part) => stem(part.replace(/^@/, "")));
  return stems.findLast((part) => !bare.has(part.toLowerCase())) ?? lastPart(word);
}

function stem(part: string): string {
  return part
    .replace(/\.(?:[cm]?[jt]s|py|rb|sh)$/, "")
    .replace(/^(?:mcp[-_]server[-_]|server[-_]|mcp[-_])(?=.)/, "")
    .replace(/(?<=.)(?:[-_]mcp[-_]server|[-_]server[-_]mcp|[-_]mcp|[-_]server)$/, "");
}

function lastPart(word: string): string {
  return word.split(/[\\/]/).at(-1) ?? "";
}
