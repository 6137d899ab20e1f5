import type { Json } from "../../../wire/json.ts";
import { cameBack, verdictOf } from "../../asking/protocol/raw-requests.ts";
import { type Check, type Fault, passed, skipped } from "../../check.ts";

const calls: readonly { readonly subject: string; readonly what: string; readonly params: Json }[] = [
  {
    subject: "unknown",
    what: "A call of a tool that does not exist",
    params: { name: "meanwhile_no_such_tool", arguments: {} },
  },
  { subject: "nameless", what: "A call without the name of a tool", params: { arguments: {} } },
];

export const check: Check = {
  id: "protocol/unknown-tool",
  question: "Is a call refused that names no tool, or one that does not exist?",
  severity: "major",
  why: "A model that mistypes a name must be told. A success makes it believe that the work is done; silence costs the user the whole time limit of the host.",
  remedy: "Answer such calls with error −32602 that names the tool. A result with isError: true is understood too.",
  source: "MCP 2025-11-25 and 2026-07-28, Tools: Error Handling",
  isGentle: true,
  async run(probe) {
    const session = await probe.open({ capabilities: {} });
    if (session.capabilities.tools === undefined) return skipped("The server declares no tools.");
    const faults: Fault[] = [];
    let isSoft = false;
    for (const { subject, what, params } of calls) {
      const answer = await session.request("tools/call", params);
      const evidence = [probe.sent({ method: "tools/call", params }), cameBack(probe, answer)];
      isSoft ||= answer.result?.isError === true;
      if (answer.message === undefined && !isRefused(answer.http?.status))
        return verdictOf([...faults, { subject, title: `${what} is not answered`, evidence }]);
      if (answer.result !== undefined && answer.result.isError !== true)
        faults.push({ subject, title: `${what} is answered as a success`, evidence });
    }
    return faults.length > 0
      ? verdictOf(faults)
      : passed(isSoft ? "It answers with isError: true instead of error −32602." : undefined);
  },
};

function isRefused(status = 0): boolean {
  return status >= 400 && status < 500;
}
