// The rows of the tables and their goals. A goal compares with `of`, in the row itself or in `row`; without a bound it
// is there to be read, not to be met.

const sdkV1 = (bound) => ({ of: "SDK v1", ...bound });
const sdkV2 = (bound) => ({ of: "SDK v2", ...bound });
const fastmcp = { of: "fastmcp", least: 1 };
const bareNode = (bound) => ({ of: "bare Node", ...bound });
const before = (bound) => ({ of: "before", ...bound });
/** The same Meanwhile in another row. */
const own = (row, name, bound) => ({ of: "Meanwhile", row, name, ...bound });

/** The peer is not asked the same here: SDK v2 has no tasks, so its cell is its plain tools/call. */
const taskGet = "tasks/get over HTTP (2026-07-28) at 10,000 live tasks, beside tools/call";

export const peerTable = {
  columns: ["SDK v1", "SDK v2", "fastmcp", "bare Node", "Meanwhile"],
  rows: [
    {
      id: "stdio-1",
      section: "stdio",
      title: "stdio, one call at a time",
      unit: "calls/s",
      goals: [sdkV1({ least: 1 }), sdkV2(), fastmcp],
    },
    {
      id: "stdio-64",
      section: "stdio",
      title: "stdio, 64 in flight",
      unit: "calls/s",
      goals: [sdkV1({ least: 1.2 }), sdkV2({ least: 2 }), fastmcp],
    },
    {
      id: "stdio-cpu",
      section: "stdio",
      title: "stdio, server CPU a call (64 in flight)",
      unit: "µs",
      goals: [sdkV1(), sdkV2()],
    },
    {
      id: "http-1",
      section: "http",
      title: "HTTP 2026-07-28, one call at a time",
      unit: "calls/s",
      goals: [sdkV2({ least: 1 })],
    },
    {
      id: "http-32",
      section: "http",
      title: "HTTP 2026-07-28, 32 in flight",
      unit: "calls/s",
      goals: [sdkV2({ least: 4.5 })],
    },
    {
      id: "http-cpu",
      section: "http",
      title: "HTTP 2026-07-28, server CPU a call (32 in flight)",
      unit: "µs",
      goals: [sdkV2(), bareNode({ most: 1.6, name: "bare `node:http`" })],
    },
    {
      id: "task-get-1",
      section: "task-get",
      title: `${taskGet}, one at a time`,
      unit: "calls/s",
      goals: [sdkV2({ least: 1 })],
    },
    {
      id: "task-get-64",
      section: "task-get",
      title: `${taskGet}, 64 in flight`,
      unit: "calls/s",
      goals: [sdkV2({ least: 3.5, moonshot: 5 })],
    },
    {
      id: "task-get-cpu",
      section: "task-get",
      title: `${taskGet}, server CPU a call (64 in flight)`,
      unit: "µs",
      goals: [sdkV2()],
    },
    {
      id: "sessions-1",
      section: "sessions",
      title: "HTTP 2025-11-25 session, one call at a time",
      unit: "calls/s",
      goals: [sdkV1({ least: 1 }), fastmcp],
    },
    {
      id: "sessions-32",
      section: "sessions",
      title: "HTTP 2025-11-25 session, 32 in flight",
      unit: "calls/s",
      goals: [sdkV1({ least: 2.5 }), fastmcp],
    },
    {
      id: "sessions-cpu",
      section: "sessions",
      title: "HTTP 2025-11-25 session, server CPU a call (32 in flight)",
      unit: "µs",
      goals: [sdkV1()],
    },
    { id: "start", section: "start", title: "start to first answer", unit: "ms", goals: [sdkV2({ most: 0.7 })] },
    {
      id: "start-cached",
      section: "start",
      title: "start to first answer, NODE_COMPILE_CACHE for all",
      unit: "ms",
      goals: [sdkV2()],
    },
    {
      id: "stdio-memory",
      section: "stdio",
      title: "memory after the stdio calls",
      unit: "MB",
      goals: [sdkV2({ most: 1 })],
    },
    {
      id: "help",
      section: "help",
      title: "`meanwhile --help`",
      unit: "ms",
      goals: [bareNode({ most: 4, name: "`node -e 0`" })],
    },
    {
      id: "command-help",
      section: "help",
      title: "`meanwhile echo text --help`",
      unit: "ms",
      goals: [bareNode({ most: 6, name: "`node -e 0`" })],
    },
  ],
};

const plain = "a plain read command";

/** Meanwhile beside itself: another command, another project, and the checkout that `--before` names. */
export const ownTable = {
  columns: ["before", "Meanwhile"],
  rows: [
    { id: "plain-cpu", title: `${plain}, one of ten, on stdio, CPU a call`, unit: "µs", goals: [before()] },
    {
      id: "later-cpu",
      title: "a command that awaits the next turn, CPU a call",
      unit: "µs",
      goals: [before({ most: 0.5 }), own("plain-cpu", plain)],
    },
    {
      id: "write-cpu",
      title: "a command that writes, CPU a call",
      unit: "µs",
      goals: [before({ most: 0.66 }), own("plain-cpu", plain)],
    },
    {
      id: "hooked-cpu",
      title: "beside a hook's fifty, CPU a call",
      unit: "µs",
      goals: [own("plain-cpu", "without", { most: 1.1 })],
    },
    { id: "plain-http-cpu", title: `${plain} on HTTP 2026-07-28, CPU a call`, unit: "µs", goals: [before()] },
    {
      id: "hooked-http-cpu",
      title: "the same beside a hook's fifty",
      unit: "µs",
      goals: [own("plain-http-cpu", "without", { most: 1.1 })],
    },
    {
      id: "many-cpu",
      title: "one of 1,000 commands on stdio, CPU a call",
      unit: "µs",
      goals: [own("plain-cpu", "one of ten", { most: 1.2 })],
    },
    { id: "list-cpu", title: "tools/list of 1,000 commands, CPU", unit: "µs", goals: [before()] },
    { id: "many-start", title: "start to first answer with 1,000 command files", unit: "ms", goals: [before()] },
  ].map((row) => ({ ...row, section: "own" })),
};

const unwrapped = (bound) => ({ of: "as it is", ...bound });
/** At most 15 % more for a call. */
const little = unwrapped({ least: 0.87 });

/** What durable() costs a server that was made with an SDK, and what is gained where the server is ours. */
export const embedTable = {
  columns: ["as it is", "with Meanwhile"],
  rows: [
    ...[
      ["v1", "SDK v1"],
      ["v2", "SDK v2"],
      ["fastmcp", "fastmcp"],
    ].flatMap(([id, name]) => [
      { id: `embed-${id}-1`, title: `${name} on stdio, one call at a time`, unit: "calls/s", goals: [little] },
      { id: `embed-${id}-64`, title: `${name} on stdio, 64 in flight`, unit: "calls/s", goals: [unwrapped()] },
      { id: `embed-${id}-cpu`, title: `${name} on stdio, CPU a call (64 in flight)`, unit: "µs", goals: [unwrapped()] },
    ]),
    {
      id: "embed-hono-1",
      title: "in Hono, the SDK v2's handler and createServer().fetch, one call at a time",
      unit: "calls/s",
      goals: [unwrapped({ least: 1 })],
    },
    { id: "embed-hono-32", title: "the same, 32 in flight", unit: "calls/s", goals: [unwrapped({ least: 1 })] },
    { id: "embed-hono-cpu", title: "the same, CPU a call (32 in flight)", unit: "µs", goals: [unwrapped()] },
  ].map((row) => ({ ...row, section: "embed" })),
};

export const sections = [
  ...new Set([...peerTable.rows, ...ownTable.rows, ...embedTable.rows].map((row) => row.section)),
];
