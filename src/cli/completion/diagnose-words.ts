import { choices, commaList, type Flag, folders, unknown } from "./grammar.ts";

/** The words of `diagnose`; a test compares them with its --help. */
export const diagnoseFlags: readonly Flag[] = [
  {
    word: "--suites",
    description: "only these, separated by commas: protocol, tasks, progress, completion, security, performance, hosts",
    values: commaList("protocol", "tasks", "progress", "completion", "security", "performance", "hosts"),
  },
  { word: "--full", description: "also what takes long: restarts, memory growth, many calls" },
  {
    word: "--tool",
    description: "a tool that may be called though it does not say that it only reads; may be given several times",
    values: unknown,
    isRepeatable: true,
  },
  { word: "--args", description: "the arguments for the tool named with --tool", values: unknown },
  {
    word: "--header",
    description: "'Name: value', sent with every request; may be given several times",
    values: unknown,
    isRepeatable: true,
  },
  { word: "--token-env", description: "the environment variable that holds the bearer token", values: unknown },
  {
    word: "--other-header",
    description: "'Name: value' of another caller, to see whether callers are kept apart",
    values: unknown,
    isRepeatable: true,
  },
  { word: "--allow-private", description: "private addresses too; this machine itself may always be typed" },
  { word: "--budget", description: "all in all, e.g. 60s or 5m (default 2m, with --full 10m)", values: unknown },
  { word: "--memory", description: "for the process that speaks to the server (default 512)", values: unknown },
  { word: "--deterministic", description: "the same report every time: without times, ids and figures" },
  { word: "--async", description: "run as a task, follow it, and tell its story" },
  { word: "--detach", description: "run as a task, print its id and leave" },
  { word: "--task", description: "take up a diagnosis that was started as a task", values: unknown },
  { word: "--task-ttl", description: "as a task: how long its report shall be kept", values: unknown },
  { word: "--poll-interval", description: "as a task: how often to look", values: unknown },
  { word: "--out", description: "write the reports there", values: folders },
  {
    word: "--format",
    description:
      "what to print, or with --out to write: terminal, json, markdown, html, sarif (default terminal; with --out all)",
    values: commaList("terminal", "json", "markdown", "html", "sarif"),
  },
  {
    word: "--fail-on",
    description:
      "exit 1 from this severity on: blocker, major, minor, info, never, which leaves only an F to fail (default major)",
    values: choices("blocker", "major", "minor", "info", "never"),
  },
  { word: "--quiet", description: "print nothing but the report" },
];

/** The words of `compare`. */
export const compareFlags: readonly Flag[] = [
  {
    word: "--fail-on",
    description: "exit 1 at this change: new, worse, unjudged, any-finding",
    values: choices("new", "worse", "unjudged", "any-finding"),
  },
  {
    word: "--format",
    description: "how to print it: terminal, json, markdown (default terminal)",
    values: choices("terminal", "json", "markdown"),
  },
];
