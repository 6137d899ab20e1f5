import { type ExitCode, UsageError } from "../../errors.ts";
import { isPort } from "../../settings/check-config.ts";
import { loadSettings } from "../../settings/settings.ts";
import { flag } from "../completion/grammar.ts";
import { projectFlags } from "../flags.ts";
import { isGiven, toProjectFlags, type Verb } from "../verb.ts";

const httpFlags = [
  flag("--port <number>", "HTTP port, 0 for any free one (default 7337)"),
  flag("--host <address>", "loopback address to listen on (default 127.0.0.1)"),
  flag("--allow-anonymous", "let HTTP callers in without the home's token; they have no bundled commands"),
];

export const verb: Verb = {
  description: "Serve the commands to MCP clients: over stdio, or over HTTP with --http",
  flags: [
    flag("--http", "serve Streamable HTTP instead of stdio"),
    ...httpFlags,
    flag("--in-process", "stdio without the daemon: what runs ends with this process"),
    ...projectFlags,
  ],
  retired: {
    "--require-token":
      "is no flag any more, because HTTP asks for the token by itself; leave it out (--allow-anonymous lets callers in without one).",
  },
  async run(typed) {
    const { options } = typed;
    const port = options.port === undefined ? undefined : Number(options.port);
    if (port !== undefined && !isPort(port))
      throw new UsageError(`--port must be a whole number from 0 to 65535, not ${String(options.port)}.`);
    const project = toProjectFlags(typed);
    if (options.http !== true && options.inProcess !== true) {
      const { word } = httpFlags.find((one) => isGiven(one.word, options)) ?? {};
      if (word !== undefined) throw new UsageError(`${word} is for --http.`);
      const { runFront } = await import("../../daemon/front.ts");
      return (await runFront(project)) as ExitCode;
    }
    const settings = await loadSettings({
      cwd: process.cwd(),
      env: process.env,
      flags: {
        ...project,
        ...(port !== undefined && { port }),
        ...(options.host !== undefined && { host: options.host as string }),
        ...(options.allowAnonymous === true && { allowAnonymous: true }),
      },
    });
    const { serveOverHttp, serveOverStdio } = await import("../entries/serve-in-process.ts");
    return options.http === true ? await serveOverHttp(settings, typed.terminal) : await serveOverStdio(settings);
  },
};
