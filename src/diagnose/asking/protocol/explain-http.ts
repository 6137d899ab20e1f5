import { legacyRevision } from "../../../wire/revisions.ts";
import type { Fault } from "../../check.ts";
import type { HttpAnswer } from "../../wire/probe-http.ts";
import type { Probe } from "../probe.ts";
import { initialize } from "./raw-requests.ts";

type Explanation = Pick<Fault, "title" | "remedy">;

/** Why nobody could speak to a server over HTTP, and what to do about it. */
export async function explainHttp(probe: Probe, problem: string): Promise<Fault> {
  const answer = await probe.http({ body: JSON.stringify(initialize(legacyRevision)) });
  const evidence = [probe.sent("POST with initialize"), shown(probe, answer)];
  const explained = explainAnswer(probe, answer);
  if (explained !== undefined) return { ...explained, evidence };
  if (await hasEndpointEvent(probe))
    return {
      title: "The server speaks the HTTP+SSE transport of 2024-11-05",
      remedy:
        "Offer Streamable HTTP: one URL that takes POST. The old transport is deprecated since 2025-03-26, and hosts drop it.",
      evidence: [...evidence, probe.received("GET is answered with an endpoint event")],
    };
  const path = await findPath(probe);
  if (path !== undefined)
    return {
      title: `There is no MCP server at this path, but there is one at ${path}`,
      remedy: `Give the URL with ${path} at its end.`,
      evidence,
    };
  const misled = explainPath(answer);
  if (misled !== undefined) return { ...misled, evidence };
  return {
    title: "The server refuses every handshake",
    remedy: "Answer initialize (2025-11-25 and before) or server/discover (2026-07-28) with a result.",
    evidence: [...evidence, probe.measured(problem)],
  };
}

/** What the answer alone tells, whatever else there is at this address. */
function explainAnswer(probe: Probe, answer: HttpAnswer): Explanation | undefined {
  const { status, ended } = answer;
  if (status === 0) return withoutAnswer(answer);
  if (status >= 300 && status < 400) return redirected(probe, answer);
  if (status >= 500 && isPage(answer))
    return {
      title: `A web page answers, not an MCP server (HTTP status ${status})`,
      remedy:
        "Give the URL of the MCP endpoint; most are at /mcp. If this is one, look into the server's log: it failed before it could answer.",
    };
  if (status >= 500 || status === 429)
    return { title: `The server answers with HTTP status ${status}`, remedy: "Look into the server's log." };
  if (ended === "too-large")
    return { title: "The answer to the handshake is too large", remedy: "Answer within a few kilobytes, and end." };
  if (ended === "timeout")
    return {
      title: "The answer to the handshake never ends",
      remedy: "Answer initialize at once, and end the stream.",
    };
  return undefined;
}

/** What it tells where no server was found nearby. */
function explainPath(answer: HttpAnswer): Explanation | undefined {
  if (answer.status === 404)
    return {
      title: "There is no MCP server at this path (HTTP status 404)",
      remedy: "Give the whole URL; most servers are at /mcp.",
    };
  if (answer.status === 405)
    return {
      title: "This path does not take POST (HTTP status 405)",
      remedy: "Give the URL of the MCP endpoint; most are at /mcp.",
    };
  if (isPage(answer))
    return {
      title: "A web page answers, not an MCP server",
      remedy: "Give the URL of the MCP endpoint, not of the page about it.",
    };
  return undefined;
}

function isPage({ headers }: HttpAnswer): boolean {
  return /^text\/html\b/i.test(headers["content-type"] ?? "");
}

function shown(probe: Probe, { status, headers, text, error, ended }: HttpAnswer) {
  if (status === 0) return probe.received(error ?? ended);
  if (headers.location !== undefined) return probe.received(`HTTP ${status}, Location: ${wayOf(probe, headers).way}`);
  return probe.received(`HTTP ${status}: ${text || "(nothing)"}`);
}

function withoutAnswer({ ended, error = "" }: HttpAnswer): Explanation {
  if (ended === "refused")
    return { title: "The address may not be spoken to", remedy: "Allow private addresses if you mean this one." };
  if (ended === "timeout")
    return {
      title: "The server takes the connection and says nothing",
      remedy: "Look whether it hangs: initialize needs an answer within seconds.",
    };
  if (error === "ECONNREFUSED")
    return { title: "Nothing listens at this address", remedy: "Start the server, and check host and port." };
  if (error === "ENOTFOUND" || error === "EAI_AGAIN")
    return { title: "There is no host of this name", remedy: "Check the host name." };
  if (/CERT|SSL|TLS|ALTNAME/.test(error))
    return {
      title: "The server's certificate is not accepted",
      remedy: "Use a certificate that clients trust for this host name.",
    };
  return {
    title: "The connection breaks before there is an answer",
    remedy: "Look into the server's log; check http and https.",
  };
}

function redirected(probe: Probe, { status, headers }: HttpAnswer): Explanation {
  const { isElsewhere } = wayOf(probe, headers);
  const asksAnew =
    status === 307 || status === 308 ? "" : " Whoever follows it asks with GET, which is no request of MCP.";
  return {
    title: `The server redirects to another ${isElsewhere ? "host" : "path"} (HTTP status ${status})`,
    remedy: `Give the URL that it leads to, if you trust it${isElsewhere ? "; credentials are never sent to another host" : ""}.${asksAnew}`,
  };
}

/** Where a redirect leads: a path of the same origin, or no more than the other origin. */
function wayOf(
  { target }: Probe,
  { location = "" }: HttpAnswer["headers"],
): { readonly isElsewhere: boolean; readonly way: string } {
  const home = target.kind === "http" ? new URL(target.url) : undefined;
  const to = URL.parse(location, home?.href);
  if (to === null) return { isElsewhere: false, way: "(none)" };
  const isElsewhere = to.origin !== home?.origin;
  return { isElsewhere, way: isElsewhere ? to.origin : to.pathname };
}

/** The transport before Streamable HTTP begins with an event that names another path. */
async function hasEndpointEvent(probe: Probe): Promise<boolean> {
  const enough = new AbortController();
  const answer = await probe.http({
    method: "GET",
    headers: { accept: "text/event-stream" },
    timeoutMs: Math.min(probe.requestMs, 1_500),
    maxBytes: 64 * 1024,
    signal: enough.signal,
    onHead: (_status, headers) => {
      if (!/^text\/event-stream\b/i.test(headers["content-type"] ?? "")) enough.abort();
    },
  });
  return answer.isStream && /^event:\s*endpoint\s*$/m.test(answer.text);
}

/** Where servers usually are, on the same host. */
async function findPath(probe: Probe): Promise<string | undefined> {
  const own = probe.target.kind === "http" ? new URL(probe.target.url).pathname : "";
  for (const path of ["/mcp", "/"].filter((path) => path !== own)) {
    const { messages } = await probe.http({
      url: path,
      body: JSON.stringify(initialize(legacyRevision)),
      timeoutMs: Math.min(probe.requestMs, 2_000),
    });
    if (
      messages.some(
        (message) => typeof message === "object" && message !== null && "jsonrpc" in message && "result" in message,
      )
    )
      return path;
  }
  return undefined;
}
