import { credentialsOf, placeOf, urlOf } from "../../asking/security/door.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";

export const check: Check = {
  id: "security/plain-http",
  question: "Is the way to the server encrypted?",
  severity: "major",
  why: "Everybody between the host and the server can read the token, the arguments and the results, and change them.",
  remedy: "Serve it over https, or bind it to 127.0.0.1 and reach it through a tunnel.",
  source: "MCP 2025-11-25 and 2026-07-28, Authorization: Communication Security",
  transport: "http",
  isStatic: true,
  async run(probe) {
    const target = urlOf(probe);
    if (new URL(target.url).protocol === "https:") return passed();
    if (placeOf(target) === "loopback") return skipped("The server is on this machine.");
    const hasCredentials = Object.keys(credentialsOf(target.headers)).length > 0;
    const evidence = [
      probe.measured(`The address begins with http://, and credentials are ${hasCredentials ? "" : "not "}sent.`),
    ];
    if (hasCredentials) return failed({ title: "Credentials travel unencrypted over http", evidence });
    return failed({ title: "Arguments and results travel unencrypted over http", severity: "minor", evidence });
  },
};
