import type { Probe } from "../../asking/probe.ts";
import {
  credentialsOf,
  knock,
  needsCredentials,
  placeOf,
  secretNamesIn,
  urlOf,
  withoutCredentials,
  withoutSecrets,
} from "../../asking/security/door.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";
import type { HttpAnswer } from "../../wire/probe-http.ts";

const fields = ["access_token", "token", "api_key"];

export const check: Check = {
  id: "security/token-in-url",
  question: "Does the server keep tokens out of addresses?",
  severity: "major",
  why: "Addresses stand in logs, histories and Referer headers; a token in one is read by many who should not have it.",
  remedy:
    "Take tokens from the Authorization header only; answer a request that carries one in its query with 401, and send none in redirects.",
  source: "MCP 2025-11-25 and 2026-07-28, Authorization: Access tokens MUST NOT be included in the URI query string",
  transport: "http",
  async run(probe) {
    const target = urlOf(probe);
    if (secretNamesIn(target.url).length > 0) return (await judgeOwnAddress(probe)) ?? passed();
    const [secret] = Object.values(credentialsOf(target.headers)).map((value) => value.replace(/^\w+\s+/, ""));
    if (secret === undefined) return skipped(needsCredentials);
    if (placeOf(target) !== "loopback" && !probe.isFull)
      return skipped("It puts your token into an address, which the server may log; --full does it.");
    const others = withoutCredentials(target.headers);
    if ((await knock(probe, others)).isOpen)
      return skipped("The server works without credentials; see security/no-credentials.");
    for (const field of fields) {
      const answer = await greetAt(probe, withField(target.url, field, secret), others);
      if (answer.isTaken)
        return failed({
          title: `The server takes the token from its address (?${field}=)`,
          evidence: [
            probe.sent(`a handshake to ?${field}=••• (your token), without credentials in the headers`),
            probe.received(`HTTP ${answer.http?.status ?? 0}, a result`),
          ],
        });
      if (answer.http?.headers.location?.includes(secret) === true)
        return failed({
          title: "The server redirects to an address with the token in it",
          evidence: [
            probe.sent(`a handshake to ?${field}=••• (your token)`),
            probe.received(`HTTP ${answer.http.status}, Location: ${answer.http.headers.location}`),
          ],
        });
    }
    return passed();
  },
};

/** The address that was given holds a secret itself: does the server need it there? */
async function judgeOwnAddress(probe: Probe) {
  const target = urlOf(probe);
  const answer = await greetAt(probe, withoutSecrets(target.url), target.headers);
  if (answer.isTaken) return undefined;
  return failed({
    title: "The server wants its secret in the address",
    evidence: [
      probe.sent("a handshake to the address without the secret in it"),
      probe.received(`HTTP ${answer.http?.status ?? 0}`),
    ],
  });
}

/** A handshake with another address of the same server. */
async function greetAt(
  probe: Probe,
  url: string,
  credentials: Readonly<Record<string, string>>,
): Promise<{ isTaken: boolean; http: HttpAnswer | undefined }> {
  const { answer } = await probe.greet({ url, credentials });
  return { isTaken: answer.result !== undefined, http: answer.http };
}

function withField(url: string, field: string, value: string): string {
  const changed = new URL(url);
  changed.searchParams.set(field, value);
  return changed.href;
}
