import type { Suggestion } from "../../command/command.ts";
import { liveStatuses, type TaskStatus } from "../../task/task.ts";
import type { VerbName } from "../main.ts";
import { type OwnTools, reachFlags, targets, toCallOperands } from "./call-words.ts";
import { compareFlags, diagnoseFlags } from "./diagnose-words.ts";
import {
  choices,
  commaList,
  type Flag,
  files,
  folders,
  type Grammar,
  nothing,
  type Operand,
  toOffer,
  unknown,
} from "./grammar.ts";
import { shells } from "./shells.ts";

/**
 * The words of our own verbs. A test compares them with what each verb's --help says, so that no verb has to be loaded
 * for them.
 */
export interface VerbWords extends Grammar {
  /** Verbs of its own. */
  readonly verbs?: Readonly<Record<string, Grammar & { readonly summary: string }>>;
}

const help: Flag = { word: "--help", description: "show this help" };
const json: Flag = { word: "--json", description: "print as JSON" };
const now: Flag = {
  word: "--now",
  description: "wait for no task: those that must not be run twice end as interrupted",
};
const commands: Flag = {
  word: "--commands",
  description: "a folder of commands; may be given several times",
  values: folders,
  isRepeatable: true,
};
const target: Flag = {
  word: "--target",
  description: "ask this server instead: a URL, a socket, a command line, or .",
  values: targets,
};
const bundled: Flag = {
  word: "--bundled",
  description: "also the commands that come with Meanwhile, beside the project's own",
};
const noBundled: Flag = { word: "--no-bundled", description: "without the commands that come with Meanwhile" };

/** What may stand before the verb or command. */
export const globalFlags: readonly Flag[] = [
  { word: "-C", description: "as if started there; comes before everything else", values: folders },
  commands,
  bundled,
  noBundled,
  { word: "--no-color", description: "no colours (also NO_COLOR=1)" },
  { word: "--version", description: "print the version" },
  help,
];

/** Tasks with these statuses, or all; newest first. */
export type FindTasks = (statuses: readonly TaskStatus[] | undefined) => Promise<readonly Suggestion[]>;

const remote: readonly Flag[] = [target, ...reachFlags, help];

const noTools: OwnTools = { list: async () => [], describe: async () => undefined, complete: async () => [] };

export function toVerbWords(findTasks: FindTasks, ownTools: OwnTools = noTools): Readonly<Record<VerbName, VerbWords>> {
  const task = (...statuses: readonly TaskStatus[]): Operand => ({
    name: "task",
    // Another server is not asked for the sake of a key that was pressed.
    values: async (_, given) =>
      given.has("--target") ? nothing : toOffer(await findTasks(statuses.length === 0 ? undefined : statuses)),
  });
  return {
    serve: {
      flags: [
        { word: "--http", description: "serve Streamable HTTP instead of stdio" },
        { word: "--port", description: "HTTP port, 0 for any free one (default 7337)", values: unknown },
        { word: "--host", description: "loopback address to listen on (default 127.0.0.1)", values: unknown },
        {
          word: "--allow-anonymous",
          description: "let HTTP callers in without the home's token; they have no bundled commands",
        },
        { word: "--in-process", description: "stdio without the daemon: what runs ends with this process" },
        commands,
        bundled,
        noBundled,
        help,
      ],
      operands: [],
    },
    call: {
      flags: [
        { word: "--args", description: "the arguments as one JSON object, sent as they are", values: unknown },
        { word: "--input", description: "read the arguments from a JSON file, or - for standard input", values: files },
        { word: "--json", description: "print the result as JSON" },
        { word: "--yaml", description: "print the result as YAML" },
        { word: "--quiet", description: "print nothing but the result" },
        { word: "--async", description: "ask for a task, follow it, and tell its story" },
        { word: "--detach", description: "ask for a task, print its id and leave" },
        { word: "--wait", description: "wait for the result, which is the default" },
        { word: "--task-ttl", description: "as a task: how long its result shall be kept", values: unknown },
        {
          word: "--poll-interval",
          description: "as a task: how often to look, until the server says how often",
          values: unknown,
        },
        { word: "--timeout", description: "cancel after this long, with exit code 124", values: unknown },
        { word: "--new", description: "start another run even if an equal one is live" },
        {
          word: "--idempotency-key",
          description: "one key, one run: a repeated call gets the first one's result",
          values: unknown,
        },
        ...reachFlags,
        help,
      ],
      operands: toCallOperands(ownTools),
    },
    tools: {
      flags: [
        { word: "--json", description: "print the whole list as JSON, schemas included" },
        commands,
        bundled,
        noBundled,
        ...reachFlags,
        help,
      ],
      operands: [{ name: "target", values: targets }],
    },
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
            ...remote,
          ],
          operands: [],
        },
        show: { summary: "everything about one task, and why it is one", flags: [json, ...remote], operands: [task()] },
        result: {
          summary: "what a task gave",
          flags: [{ word: "--wait", description: "wait for the end" }, json, ...remote],
          operands: [task()],
        },
        progress: {
          summary: "how far the call is that a client follows by this token; all of them",
          flags: [json, ...remote],
          operands: [{ name: "token", values: unknown }],
        },
        watch: { summary: "a live view of your tasks, or follow one to its end", flags: remote, operands: [task()] },
        cancel: { summary: "stop a task", flags: remote, operands: [task(...liveStatuses)] },
        answer: {
          summary: "answer what a task asks",
          flags: [{ word: "--decline", description: "say no" }, ...remote],
          operands: [task("input_required"), { name: "answers", values: unknown, isList: true }],
        },
        prune: { summary: "forget the tasks that have ended", flags: remote, operands: [] },
      },
    },
    stats: {
      flags: [json, { word: "--all", description: "of every project, not of this one alone" }, help],
      operands: [],
    },
    diagnose: {
      flags: [...diagnoseFlags, help],
      operands: [{ name: "target", values: choices(".", "http://", "https://") }],
    },
    compare: {
      flags: [...compareFlags, help],
      operands: [
        { name: "before", values: files },
        { name: "after", values: files },
      ],
    },
    setup: {
      flags: [
        { word: "--all", description: "every host that is installed; with --remove, every one that has the entry" },
        { word: "--project", description: "the project's file in this folder, to be shared, in place of your own" },
        { word: "--remove", description: "take the entry away" },
        {
          word: "--replace",
          description:
            "put the entry in place of one that setup did not write; nothing of that one is kept but a backup",
        },
        { word: "--dry-run", description: "print what would change as a diff, and change nothing" },
        {
          word: "--name",
          description: "what the hosts call it (default: the name in the config, or meanwhile)",
          values: unknown,
        },
        {
          word: "--env",
          description: "a variable for the commands, such as a key; may be given several times",
          values: unknown,
        },
        commands,
        bundled,
        noBundled,
        help,
      ],
      operands: [
        {
          name: "hosts",
          values: choices(
            "claude-code",
            "claude-desktop",
            "codex",
            "cursor",
            "vscode",
            "gemini",
            "opencode",
            "copilot",
            "cline",
            "windsurf",
            "zed",
          ),
          isList: true,
        },
      ],
    },
    daemon: {
      flags: [help],
      operands: [],
      verbs: {
        status: { summary: "the daemons of this home", flags: [json, help], operands: [] },
        stop: {
          summary: "end this project's daemon; what is safe to run again waits for the next one",
          flags: [{ word: "--all", description: "every daemon of this home" }, now, help],
          operands: [],
        },
        restart: {
          summary: "end it and start another; connected clients stay connected",
          flags: [now, help],
          operands: [],
        },
        logs: {
          summary: "what the daemons of this home have written",
          flags: [
            { word: "--follow", description: "go on printing what is written" },
            { word: "--json", description: "print the lines as they are in the file: JSON" },
            help,
          ],
          operands: [],
        },
      },
    },
    token: { flags: [help], operands: [] },
    completion: { flags: [help], operands: [{ name: "shell", values: choices(...shells) }] },
  };
}
