import { flag, operand } from "../completion/grammar.ts";
import { jsonFlag } from "../flags.ts";
import type { Verb, VerbGroup } from "../verb.ts";

type DaemonVerb = keyof typeof import("../daemons/control-daemon.ts").subverbs;

const pid = operand("[pid]", undefined, "which one, as `daemon status` shows it");
const now = flag("--now", "wait for no task: those that must not be run twice end as interrupted");

const run =
  (name: DaemonVerb): Verb["run"] =>
  async (typed) => {
    const { controlDaemon } = await import("../daemons/control-daemon.ts");
    return await controlDaemon(name, typed);
  };

export const verb: VerbGroup = {
  verbs: {
    status: {
      line: "status [--json]",
      description: "the daemons of this home",
      flags: [jsonFlag],
      run: run("status"),
    },
    stop: {
      line: "stop [pid] [--all] [--now]",
      description: "end this project's daemon; asks first if a question would be lost",
      flags: [flag("--all", "every daemon of this home"), now],
      operands: [pid],
      run: run("stop"),
    },
    restart: {
      line: "restart [pid] [--now]",
      description: "start another and end it; clients stay connected, questions stay open",
      flags: [now],
      operands: [pid],
      run: run("restart"),
    },
    logs: {
      line: "logs [--follow] [--json]",
      description: "what the daemons of this home have written",
      flags: [
        flag("--follow", "go on printing what is written"),
        flag("--json", "print the lines as they are in the file: JSON"),
      ],
      run: run("logs"),
    },
  },
};
