import { severities, suiteNames } from "../../diagnose/check.ts";
import { UsageError } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import { choices, commaList, flag, folders, operand } from "../completion/grammar.ts";
import { keptReports, reportFormats } from "../diagnose/report-output.ts";
import { headerFlags } from "../flags.ts";
import { quoteWord } from "../remote/server-target.ts";
import { clean } from "../terminal.ts";
import type { Verb } from "../verb.ts";

export const verb: Verb = {
  description: `Say whether an MCP server will survive in the hosts people use, and what to change.

The target is one of
  https://host/mcp      a URL
  .                     this project's own server
  -- command …          a server to start; the words go to the system as they are
Only tools that say they only read are called, and those you name with --tool.`,
  flags: [
    flag("--suites <list>", `only these, separated by commas: ${suiteNames.join(", ")}`, {
      values: commaList(...suiteNames),
    }),
    flag("--full", "also what takes long: restarts, memory growth, many calls"),
    flag(
      "--tool <name>",
      "a tool that may be called though it does not say that it only reads; may be given several times",
      { isRepeatable: true },
    ),
    flag("--args <json>", "the arguments for the tool named with --tool"),
    ...headerFlags,
    flag("--other-header <header>", "'Name: value' of another caller, to see whether callers are kept apart", {
      isRepeatable: true,
    }),
    flag("--foreign-header <header>", "'Name: value' with a token for another server, to see whether it is refused", {
      isRepeatable: true,
    }),
    flag("--allow-private", "private addresses too; this machine itself may always be typed"),
    flag("--budget <time>", "all in all, e.g. 60s or 5m (default 2m, with --full 10m)"),
    flag("--memory <mb>", "for the process that speaks to the server (default 512)"),
    flag("--deterministic", "the same report every time: without times, ids and figures"),
    flag("--async", "run as a task, follow it, and tell its story"),
    flag("--detach", "run as a task, print its id and leave"),
    flag("--task <id>", "take up a diagnosis that was started as a task"),
    flag("--task-ttl <ms>", "as a task: how long its report shall be kept"),
    flag("--poll-interval <ms>", "as a task: how often to look"),
    flag("--out <folder>", "write the reports there", { values: folders }),
    flag(
      "--format <list>",
      `what to print, or with --out to write: ${reportFormats.join(", ")} (default terminal; with --out all)`,
      { values: commaList(...reportFormats) },
    ),
    flag(
      "--fail-on <severity>",
      `exit 1 from this severity on: ${severities.join(", ")}, never, which leaves only an F to fail (default major)`,
      { values: choices(...severities, "never") },
    ),
    flag("--quiet", "print nothing but the report"),
  ],
  operands: [operand("[target]", choices(".", "http://", "https://"), "a URL, or . for this project's own server")],
  takesServer: true,
  get notes() {
    return `
Suites: ${suiteNames.join(", ")}

Examples:
  $ ${thisProgram.name} diagnose https://example.org/mcp --token-env TOKEN
  $ ${thisProgram.name} diagnose --full --out reports -- npx -y @modelcontextprotocol/server-everything
  $ ${thisProgram.name} diagnose . --suites tasks,hosts --tool report_build --args '{"quarter":"Q3"}'

Exit codes: 0 fine; 1 a finding reaches --fail-on, a call that you named failed,
or the grade is F; 2 wrong words; 70 ours; 130 cancelled.
The last ${keptReports} reports are kept in the home's folder reports; \`${thisProgram.name} compare\` shows what changed.
`;
  },
  async run(typed) {
    const { options, operands, server, terminal, context } = typed;
    const { readDiagnosis, readMs, readOutput } = await import("../diagnose/read-diagnosis.ts");
    const { followDiagnosis, startDiagnosis } = await import("../diagnose/diagnose-task.ts");
    const { writeReport } = await import("../diagnose/write-report.ts");
    const output = readOutput(options, context.cwd);
    if (typeof options.task === "string") {
      if (operands.length > 0 || server !== undefined)
        throw new UsageError("--task takes up a diagnosis that was started before; leave the target away.");
      const how = { terminal, context, isQuiet: output.isQuiet, pollIntervalMs: readMs(options, "pollInterval") };
      return await writeReport(await followDiagnosis(options.task, how), output, { terminal, context });
    }
    const asTask = {
      terminal,
      context,
      ttlMs: readMs(options, "taskTtl"),
      pollIntervalMs: readMs(options, "pollInterval"),
    };
    // Its cure is then a line to type.
    const { nameInHosts } = await import("../setup/find-entry.ts");
    const typedDiagnosis = readDiagnosis(typed, output);
    const diagnosis = {
      ...typedDiagnosis,
      target: { ...typedDiagnosis.target, entry: nameInHosts(typedDiagnosis.target, context) },
    };
    if (diagnosis.target.kind === "stdio" && !output.isQuiet)
      terminal.say(
        `${terminal.colors.yellow("!")} This command is started on your machine, several times: ${clean(diagnosis.target.argv.map(quoteWord).join(" "))}\n`,
      );
    if (options.async === true || options.detach === true) {
      const how = { ...asTask, isDetached: options.detach === true };
      return await writeReport(await startDiagnosis(diagnosis, how), output, { terminal, context });
    }
    const { diagnoseHere } = await import("../diagnose/diagnose-here.ts");
    return await writeReport(await diagnoseHere(diagnosis, { terminal, context }), output, { terminal, context });
  },
};
