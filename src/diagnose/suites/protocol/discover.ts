import { fieldsOf, isObject, textOf } from "../../../wire/json.ts";
import { metaKeys } from "../../../wire/request-envelope.ts";
import { modernRevision } from "../../../wire/revisions.ts";
import { noModern, verdictOf } from "../../asking/protocol/raw-requests.ts";
import { type Check, type Fault, skipped } from "../../check.ts";

export const check: Check = {
  id: "protocol/discover",
  question: "Does server/discover tell revisions, capabilities and the server's name in the form that clients read?",
  severity: "major",
  why: "A client that cannot read this answer takes the server for an old one and falls back to initialize, or shows it without a name.",
  remedy:
    'Answer server/discover with supportedVersions (texts), capabilities (each an object) and _meta["io.modelcontextprotocol/serverInfo"] with name and version.',
  source: "MCP 2026-07-28, Discovery; DiscoverResult of the schema",
  isGentle: true,
  async run(probe) {
    if (probe.facts.modern === undefined) return skipped(noModern);
    const { hello } = await probe.open({ revision: modernRevision });
    const faults: Fault[] = [];
    const evidence = [probe.sent("server/discover"), probe.received(hello)];
    const add = (subject: string, title: string, severity: Fault["severity"] = "major") =>
      faults.push({ subject, title, severity, evidence });
    const versions = Array.isArray(hello.supportedVersions) ? hello.supportedVersions : [];
    if (versions.some((version) => typeof version !== "string"))
      add("supportedVersions", "supportedVersions holds something that is no text");
    if (!isObject(hello.capabilities)) add("capabilities", "server/discover tells no capabilities");
    for (const [name, value] of Object.entries(fieldsOf(hello.capabilities)).slice(0, 50))
      if (!isObject(value))
        add(`capabilities.${probe.show(name, 60)}`, `The capability ${probe.show(name, 60)} is no object`);
    if (hello.instructions !== undefined && typeof hello.instructions !== "string")
      add("instructions", "The instructions of server/discover are no text");
    const info = fieldsOf(fieldsOf(hello._meta)[metaKeys.serverInfo]);
    if (textOf(info.name) === undefined || textOf(info.version) === undefined)
      add("serverInfo", "server/discover does not say what the server is called and which version it is", "minor");
    return verdictOf(faults);
  },
};
