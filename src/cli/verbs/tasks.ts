import { UsageError } from "../../errors.ts";
import { liveStatuses, type TaskStatus } from "../../task/task.ts";
import { commaList, flag, nothing, type Operand, operand, toOffer, unknown } from "../completion/grammar.ts";
import { jsonFlag, outFlag, reachFlags, targets } from "../flags.ts";
import { isGiven, type Verb, type VerbGroup } from "../verb.ts";

type TaskVerb = keyof typeof import("../own/own-tasks.ts").subverbs;

const reach = [
  flag("--target <target>", "ask this server instead: a URL, a socket, a command line, or .", { values: targets }),
  ...reachFlags,
];

/** A task by its id; another server is not asked for those it has for the sake of a key that was pressed. */
function task(shown: string, description = "", statuses?: readonly TaskStatus[]): Operand {
  return operand(
    shown,
    async (_, given, known) => (given.has("--target") ? nothing : toOffer(await known.findTasks(statuses))),
    description,
  );
}

const byId = "its id, or the beginning of it";

const run =
  (name: TaskVerb): Verb["run"] =>
  async (typed) => {
    if (typed.options.target !== undefined) {
      if (typed.options.project !== undefined)
        throw new UsageError(
          "--project filters the tasks of this home; a server named with --target lists its own project.",
        );
      const { runRemoteTasks } = await import("../remote/remote-tasks.ts");
      return await runRemoteTasks(name, typed);
    }
    if (reachFlags.some(({ word }) => isGiven(word, typed.options)))
      throw new UsageError("--header, --token-env and --revision say how to reach a server; name it with --target.");
    const { runOwnTasks } = await import("../own/own-tasks.ts");
    return await runOwnTasks(name, typed);
  };

export const verb: VerbGroup = {
  verbs: {
    list: {
      line: "list [--live] [--status s] [--project p] [--limit n] [--cursor c] [--json]",
      description: "your tasks of all projects, newest first",
      flags: [
        flag("--live", "what runs now, calls that a client still waits for included"),
        flag("--status <status>", "only these, separated by commas", {
          values: commaList(...liveStatuses, "completed", "failed", "cancelled"),
        }),
        flag(
          "--project <project>",
          "only those of this project: its folder, or its name as in `tasks show`; . is this folder",
        ),
        flag("--limit <number>", "how many (1–100)"),
        flag("--cursor <cursor>", "where the last page ended"),
        jsonFlag,
        ...reach,
      ],
      run: run("list"),
    },
    show: {
      line: "show <task> [--json]",
      description: "everything about one task, and why it is one",
      flags: [jsonFlag, ...reach],
      operands: [task("<task>", byId)],
      run: run("show"),
    },
    result: {
      line: "result <task> [--wait] [--json] [--out file]",
      description: "what a task gave",
      flags: [flag("--wait", "wait for the end"), jsonFlag, outFlag, ...reach],
      operands: [task("<task>", byId)],
      run: run("result"),
    },
    progress: {
      line: "progress [token] [--json]",
      description: "how far the call is that a client follows by this token; all of them",
      flags: [jsonFlag, ...reach],
      operands: [operand("[token]", unknown, "a progress token, as the client chose it")],
      run: run("progress"),
    },
    watch: {
      line: "watch [task]",
      description: "a live view of your tasks, or follow one to its end",
      flags: reach,
      operands: [task("[task]")],
      run: run("watch"),
    },
    cancel: {
      line: "cancel <task>",
      description: "stop a task",
      flags: reach,
      operands: [task("<task>", byId, liveStatuses)],
      run: run("cancel"),
    },
    retry: {
      line: "retry <task>",
      description: "run a waiting task with the present values of its variables",
      flags: reach,
      operands: [task("<task>", byId, ["queued"])],
      run: run("retry"),
    },
    answer: {
      line: "answer <task> [field=value …] [--decline]",
      description: "answer what a task asks",
      flags: [flag("--decline", "say no"), ...reach],
      operands: [task("<task>", "", ["input_required"]), operand("[answers...]", unknown)],
      run: run("answer"),
    },
    prune: { line: "prune", description: "forget the tasks that have ended", flags: reach, run: run("prune") },
  },
  notes: "\nWith --target <url | socket | command line | .> they ask that server.\n",
};
