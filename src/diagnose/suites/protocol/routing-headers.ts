import type { Json } from "../../../wire/json.ts";
import { modernRevision } from "../../../wire/revisions.ts";
import { cameBack, errorOf, noModern, verdictOf } from "../../asking/protocol/raw-requests.ts";
import { type Check, type Fault, skipped } from "../../check.ts";

interface Wrong {
  readonly subject: string;
  readonly what: string;
  readonly method: string;
  readonly params: Json;
  readonly headers: Readonly<Record<string, string>>;
}

/** No tool of these names exists, so nothing is ever run. */
const cases: readonly Wrong[] = [
  {
    subject: "Mcp-Method",
    what: "a Mcp-Method of another method",
    method: "server/discover",
    params: {},
    headers: { "mcp-method": "tools/list" },
  },
  {
    subject: "no Mcp-Method",
    what: "no Mcp-Method",
    method: "server/discover",
    params: {},
    headers: { "mcp-method": "" },
  },
  {
    subject: "Mcp-Name",
    what: "a Mcp-Name of another tool",
    method: "tools/call",
    params: { name: "meanwhile_no_such_tool", arguments: {} },
    headers: { "mcp-name": "meanwhile_other_tool" },
  },
];

export const check: Check = {
  id: "protocol/routing-headers",
  question: "Is a request refused whose Mcp-Method and Mcp-Name headers do not fit its body?",
  severity: "major",
  why: "Gateways decide by these headers who may call what, without reading the body. Where the server does not compare them, a caller gets past the gateway by writing something else into the body.",
  remedy:
    "Compare Mcp-Method and Mcp-Name (decoded, where it is written as =?base64?…?=) with the body; answer with HTTP status 400 and error −32020 when they differ or are missing.",
  source: "MCP 2026-07-28, Streamable HTTP: Server Validation",
  transport: "http",
  async run(probe) {
    if (probe.facts.modern === undefined) return skipped(noModern);
    const session = await probe.open({ revision: modernRevision });
    const faults: Fault[] = [];
    for (const { subject, what, method, params, headers } of cases) {
      if (method === "tools/call" && session.capabilities.tools === undefined) continue;
      const answer = await session.request(method, params, { headers });
      const evidence = [
        probe.sent({
          method,
          headers: Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== "")),
        }),
        cameBack(probe, answer),
      ];
      const status = answer.http?.status ?? 0;
      if (status === 0)
        return verdictOf([...faults, { subject, title: `A request with ${what} is not answered`, evidence }]);
      const code = errorOf(answer.message)?.code;
      if (code === -32020 && status === 400) continue;
      if (status >= 400 && status < 500 && code !== -32601)
        faults.push({
          subject,
          title: `A request with ${what} is refused, but not with status 400 and error −32020`,
          severity: "minor",
          evidence,
        });
      else faults.push({ subject, title: `A request with ${what} is taken`, evidence });
    }
    if (session.capabilities.tools !== undefined) {
      const answer = await session.request("tools/call", { name: "meanwhile no such tøøl", arguments: {} });
      if (errorOf(answer.message)?.code === -32020)
        faults.push({
          subject: "base64",
          title: "A Mcp-Name written as =?base64?…?= is compared without being decoded",
          evidence: [probe.sent("tools/call with an encoded Mcp-Name"), cameBack(probe, answer)],
        });
    }
    return verdictOf(faults);
  },
};
