import { fieldsOf, listOf } from "../../../wire/json.ts";
import type { Probe } from "../../asking/probe.ts";
import { cameBack, knockAsNobody, placeOf, urlOf, wentOut } from "../../asking/security/door.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";
import { parseJson } from "../../wire/bounded-json.ts";

export const check: Check = {
  id: "security/sign-in-hint",
  question: "Does a refusal tell a host how to sign in?",
  severity: "minor",
  why: "Hosts begin to sign in on 401 with WWW-Authenticate, or with the metadata that it names. Without, people see only that the server failed.",
  remedy:
    'Answer with 401 and `WWW-Authenticate: Bearer resource_metadata="https://host/.well-known/oauth-protected-resource"`; where tokens are handed out by people, `WWW-Authenticate: Bearer` is enough.',
  source: "RFC 9110, 401; RFC 9728; MCP 2025-11-25, Authorization: Protected Resource Metadata Discovery Requirements",
  transport: "http",
  isForLocked: true,
  async run(probe) {
    const { isOpen, answer } = await knockAsNobody(probe);
    if (isOpen) return skipped("The server asks for no credentials.");
    const { status = 0, headers = {} } = answer.http ?? {};
    const hint = headers["www-authenticate"];
    const evidence = [
      wentOut(probe, "a handshake without credentials"),
      probe.received(`HTTP ${status}, WWW-Authenticate: ${hint ?? "(none)"}`),
    ];
    if (status === 403)
      return failed({ title: "A caller without credentials is answered with 403, where hosts expect 401", evidence });
    if (status !== 401)
      return failed({
        title: "A caller without credentials is not answered with 401",
        evidence: [wentOut(probe, "a handshake without credentials"), cameBack(probe, answer)],
      });
    if (hint === undefined)
      return failed({ title: "The refusal names no way to sign in: WWW-Authenticate is missing", evidence });
    return judgeMetadata(probe, hint, evidence);
  },
};

/** Where a host would be sent to. Only what lies on the server's own address is looked at. */
async function judgeMetadata(probe: Probe, hint: string, evidence: ReturnType<Probe["received"]>[]) {
  const home = new URL(urlOf(probe).url);
  const named = /\bresource_metadata="?([^",\s]+)"?/i.exec(hint)?.[1];
  if (named === undefined)
    return passed("It names a scheme, but no metadata: people have to get a token by other means.");
  const url = URL.parse(named);
  if (url === null || !/^https?:$/.test(url.protocol))
    return failed({ title: "The address of the sign-in metadata is no http or https URL", evidence });
  if (!isSamePlace(url, home)) {
    if (url.protocol === "https:") return passed("The sign-in metadata lies on another address, which was not asked.");
    return failed({ title: "The sign-in metadata lies on another address without TLS", severity: "major", evidence });
  }
  const own = new URL(home);
  own.pathname = url.pathname;
  own.search = url.search;
  const answer = await probe.http({
    method: "GET",
    url: own.href,
    isBare: true,
    headers: { accept: "application/json" },
  });
  const metadata = fieldsOf(parseJson(answer.text));
  if (answer.status === 200 && listOf(metadata.authorization_servers).length > 0) return passed();
  return failed({
    title: "The sign-in metadata that the refusal names cannot be read",
    evidence: [...evidence, probe.received(`HTTP ${answer.status} ${answer.text}`)],
  });
}

/**
 * The same origin; on this machine whatever it is called, since localhost, 127.0.0.1 and [::1] are names of one place.
 */
function isSamePlace(one: URL, other: URL): boolean {
  if (one.origin === other.origin) return true;
  const isLocal = [one, other].every(({ href }) => placeOf({ url: href }) === "loopback");
  return isLocal && one.protocol === other.protocol && one.port === other.port;
}
