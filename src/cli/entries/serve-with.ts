import path from "node:path";
import { isPublicUrl } from "../../auth/issuers.ts";
import { Exit, type ExitCode, UsageError } from "../../errors.ts";
import type { ProjectFlags } from "../../project/project.ts";
import { unsetVariable } from "../../project/variable-references.ts";
import { isPort } from "../../settings/check-config.ts";
import { loadSettings } from "../../settings/settings.ts";
import { onStop } from "../../system/on-stop.ts";
import { type Flag, files, flag } from "../completion/grammar.ts";
import { isGiven, type TypedVerb } from "../verb.ts";

const httpFlags = [
  flag("--port <number>", "HTTP port, 0 for any free one (default 7337)"),
  flag("--host <address>", "loopback address to listen on (default 127.0.0.1)"),
  flag("--socket <path>", "listen on a socket file that only you can use (Windows: a pipe) instead of a port", {
    values: files,
  }),
  flag("--public-url <url>", "the URL that clients know, e.g. https://example.com/mcp (default: where it listens)"),
  flag("--allow-anonymous", "let HTTP callers in without the home's token; they have no bundled commands"),
];

/** How it is served, whatever is. */
export const serveFlags: readonly Flag[] = [
  flag("--http", "serve Streamable HTTP instead of stdio"),
  ...httpFlags,
  flag("--in-process", "stdio without the daemon: what runs ends with this process"),
];

/** Serves a project as these flags say. */
export async function serveWith(project: ProjectFlags, { options, terminal, context }: TypedVerb): Promise<ExitCode> {
  const port = options.port === undefined ? undefined : Number(options.port);
  if (port !== undefined && !isPort(port))
    throw new UsageError(`--port must be a whole number from 0 to 65535, not ${String(options.port)}.`);
  if (options.http !== true && options.inProcess !== true) {
    const { word } = httpFlags.find((one) => isGiven(one.word, options)) ?? {};
    if (word !== undefined) throw new UsageError(`${word} is for --http.`);
    if (options.work === false) throw new UsageError("--no-work is for --http.");
    const { proxyStdio } = await import("../../daemon/front.ts");
    // All runs are in the daemon, so the proxy can exit on any signal.
    onStop(() => context.exit(Exit.Ok), context);
    return (await proxyStdio(project, context)) as ExitCode;
  }
  const socket = readSocket(options, context);
  const publicUrl = readPublicUrl(options);
  const unset = project.wrap === undefined ? undefined : unsetVariable(project.wrap.upstreams, context.env);
  if (unset !== undefined) throw new UsageError(unset);
  const settings = await loadSettings({
    cwd: context.cwd,
    env: context.env,
    flags: {
      ...project,
      ...(port !== undefined && { port }),
      ...(options.host !== undefined && { host: options.host as string }),
      ...(socket !== undefined && { socket }),
      ...(publicUrl !== undefined && { publicUrl }),
      ...(options.allowAnonymous === true && { allowAnonymous: true }),
      ...(options.work === false && { worksHere: false }),
    },
  });
  const { serveOverHttp, serveOverStdio } = await import("./serve-in-process.ts");
  return options.http === true
    ? await serveOverHttp(settings, { terminal, context, project })
    : await serveOverStdio(settings, context);
}

function readPublicUrl({ publicUrl }: TypedVerb["options"]): string | undefined {
  if (typeof publicUrl !== "string") return undefined;
  if (isPublicUrl(publicUrl)) return publicUrl;
  throw new UsageError(
    "--public-url must be the http or https URL that clients know, without a query, e.g. https://example.com/mcp.",
  );
}

/** The absolute path of `--socket`; on Windows the name of a pipe as it was typed. */
function readSocket({ socket, port, host }: TypedVerb["options"], context: TypedVerb["context"]): string | undefined {
  if (typeof socket !== "string") return undefined;
  if (port !== undefined || host !== undefined)
    throw new UsageError(
      `--socket and ${port === undefined ? "--host" : "--port"} exclude each other; a socket has neither host nor port.`,
    );
  if (socket === "") throw new UsageError("--socket is empty; give the path of the socket file.");
  return context.platform === "win32" ? socket : path.resolve(context.cwd, socket);
}
