import { Cancelled, CommandError, Exit, type ExitCode } from "../../errors.ts";
import { signIn } from "../../gateway/oauth/sign-in.ts";
import { toSignIn } from "../../gateway/oauth/upstream-sign-in.ts";
import { resolveAddress } from "../../gateway/resolve-address.ts";
import type { Home } from "../../paths.ts";
import type { UpstreamConfig } from "../../project/upstream-config.ts";
import { sessionEnvironment } from "../../project/wrap.ts";
import { pageOpener } from "../../system/open-page.ts";
import type { ProcessContext } from "../process-context.ts";
import type { Terminal } from "../terminal.ts";

export interface SignInRequest {
  readonly upstreams: Readonly<Record<string, UpstreamConfig>>;
  readonly home: Home;
  readonly terminal: Terminal;
  readonly context: ProcessContext;
}

/** Signs in to each of these upstreams, one after the other; daemons find what comes of it in the home. */
export async function signInToUpstreams({ upstreams, home, terminal, context }: SignInRequest): Promise<ExitCode> {
  const stopping = new AbortController();
  const off = terminal.onInterrupt(() => stopping.abort(new Cancelled()));
  const person = {
    say: (text: string) => terminal.say(text),
    openPage: terminal.isLive ? pageOpener(context.env, context.platform) : undefined,
  };
  try {
    for (const [name, config] of Object.entries(upstreams)) {
      const place = { name, environment: sessionEnvironment(context.env), folder: terminal.folder };
      const { address } = resolveAddress(config, place);
      const upstream = toSignIn(config, address, { place, home });
      if (upstream === undefined) throw new CommandError(whyNobody(name, config));
      await signIn(upstream, person, stopping.signal);
    }
    return Exit.Ok;
  } finally {
    off();
  }
}

function whyNobody(name: string, { url }: UpstreamConfig): string {
  return url === undefined
    ? `${name} is started by a command, and signs in by itself: by its variables, or as its documents say.`
    : `${name} is sent the \`Authorization\` header that stands in its config; take that out to sign in.`;
}
