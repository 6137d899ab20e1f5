import type { ServerFacts, Tool } from "../../client/client.ts";
import { Exit, type ExitCode } from "../../errors.ts";
import { toColumns, widthFor } from "../screens/layout.ts";
import { clean } from "../terminal.ts";
import { type Connecting, withClient } from "./connect-target.ts";

/** `meanwhile tools <target>`: what a server offers, and who it is. */
export async function listRemoteTools(connecting: Connecting, isJson: boolean): Promise<ExitCode> {
  const { terminal } = connecting;
  return await withClient(connecting, async ({ client }) => {
    const tools = await client.listTools();
    terminal.say(`${heading(client.server)}\n`);
    if (isJson) terminal.print(`${JSON.stringify({ server: client.server, tools }, null, 2)}\n`);
    else if (tools.length === 0) terminal.print("No tools.\n");
    else terminal.print(toTable(tools, widthFor(terminal)));
    return Exit.Ok;
  });
}

function heading({ name, version, revision, tasks }: ServerFacts): string {
  return clean(
    `${name} ${version} speaks ${revision}, ${tasks === "none" ? "without tasks" : `with tasks of ${tasks}`}`,
  );
}

function toTable(tools: readonly Tool[], width: number): string {
  return toColumns(
    [["Tool", "What it does"], ...tools.map((tool) => [clean(tool.name), `${summaryOf(tool)}${marksOf(tool)}`])],
    width,
  );
}

/** The first sentence says what a tool does; the rest is for models. */
function summaryOf({ description, title }: Tool): string {
  const text = [description, title].find((words) => typeof words === "string" && words.trim() !== "") ?? "";
  const line = text.trim().split("\n")[0] ?? "";
  return clean(/^.+?\.(?=\s)/.exec(line)?.[0] ?? line);
}

function marksOf({ annotations, execution, _meta }: Tool): string {
  const own = (_meta?.["meanwhile/tool"] ?? {}) as { readonly async?: unknown };
  const isRead = annotations?.readOnlyHint === true;
  const marks = [
    own.async === true ? "long" : "",
    isRead ? "read" : annotations?.destructiveHint === true ? "destroy" : "",
    { required: "only as a task", optional: "task", forbidden: "" }[execution?.taskSupport ?? "forbidden"] ?? "",
  ].filter(Boolean);
  return marks.length === 0 ? "" : ` [${marks.join(", ")}]`;
}
