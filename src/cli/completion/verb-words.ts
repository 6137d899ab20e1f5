import type { Suggestion } from "../../command/command.ts";
import { liveStatuses, type TaskStatus } from "../../task/task.ts";
import type { VerbName } from "../main.ts";
import { choices, commaList, type Flag, folders, type Grammar, type Operand, toOffer, unknown } from "./grammar.ts";
import { shells } from "./shells.ts";

/** The words of our own verbs. A test compares them with what each verb's --help says, so that no verb has to be loaded for them. */
export interface VerbWords extends Grammar {
  /** Verbs of its own. */
  readonly verbs?: Readonly<Record<string, Grammar & { readonly summary: string }>>;
}

const help: Flag = { word: "--help", description: "show this help" };
const json: Flag = { word: "--json", description: "print as JSON" };
const commands: Flag = { word: "--commands", description: "a folder of commands; may be given several times", values: folders, isRepeatable: true };
const noBundled: Flag = { word: "--no-bundled", description: "without the commands that come with Meanwhile" };

/** What may stand before the verb or command. */
export const globalFlags: readonly Flag[] = [
  commands,
  noBundled,
  { word: "--no-color", description: "no colours (also NO_COLOR=1)" },
  { word: "--version", description: "print the version" },
  help,
];

/** Tasks with these statuses, or all; newest first. */
export type FindTasks = (statuses: readonly TaskStatus[] | undefined) => Promise<readonly Suggestion[]>;

export function toVerbWords(findTasks: FindTasks): Readonly<Record<VerbName, VerbWords>> {
  const task = (...statuses: readonly TaskStatus[]): Operand => ({
    name: "task",
    values: async () => toOffer(await findTasks(statuses.length === 0 ? undefined : statuses)),
  });
  return {
    serve: {
      flags: [
        { word: "--http", description: "serve Streamable HTTP instead of stdio" },
        { word: "--port", description: "HTTP port, 0 for any free one (default 7337)", values: unknown },
        { word: "--host", description: "loopback address to listen on (default 127.0.0.1)", values: unknown },
        { word: "--require-token", description: "refuse HTTP calls without the home's token" },
        { word: "--in-process", description: "run commands in this very process (stdio)" },
        commands,
        noBundled,
        help,
      ],
      operands: [],
    },
    call: { flags: [help], operands: [] },
    setup: { flags: [help], operands: [] },
    daemon: { flags: [help], operands: [] },
    tools: { flags: [{ word: "--json", description: "print the whole list as JSON, schemas included" }, commands, noBundled, help], operands: [] },
    new: { flags: [help], operands: [{ name: "command", values: unknown }] },
    tasks: {
      flags: [help],
      operands: [],
      verbs: {
        list: {
          summary: "your tasks, newest first",
          flags: [
            { word: "--live", description: "what runs now, calls that a client still waits for included" },
            {
              word: "--status",
              description: "only these, separated by commas",
              values: commaList(...liveStatuses, "completed", "failed", "cancelled"),
            },
            { word: "--limit", description: "how many (1–100)", values: unknown },
            { word: "--cursor", description: "where the last page ended", values: unknown },
            json,
            help,
          ],
          operands: [],
        },
        show: { summary: "everything about one task, and why it is one", flags: [json, help], operands: [task()] },
        result: { summary: "what a task gave", flags: [{ word: "--wait", description: "wait for the end" }, json, help], operands: [task()] },
        watch: { summary: "a live view of your tasks, or follow one to its end", flags: [help], operands: [task()] },
        cancel: { summary: "stop a task", flags: [help], operands: [task(...liveStatuses)] },
        answer: {
          summary: "answer what a task asks",
          flags: [{ word: "--decline", description: "say no" }, help],
          operands: [task("input_required"), { name: "answers", values: unknown, isList: true }],
        },
        prune: { summary: "forget the tasks that have ended", flags: [help], operands: [] },
      },
    },
    stats: { flags: [json, help], operands: [] },
    token: { flags: [help], operands: [] },
    completion: { flags: [help], operands: [{ name: "shell", values: choices(...shells) }] },
  };
}
