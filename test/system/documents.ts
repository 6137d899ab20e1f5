/**
 * The five documents that this product comes from, name by name: whatever tool, field, variable, function or command
 * one of them names works as written there, or in a better form, with the reason. documents.test.ts runs the checks,
 * looks for the tests that are named, and, where the documents lie beside the repository, fails for a name without a
 * row.
 */
type DocumentName =
  | "wks-async-tools"
  | "wks-mcp-layer"
  | "erlmcp-progress-and-completion"
  | "cortexdx-tasks-api"
  | "muninn-auto-task-deferral";

export interface DocumentRow {
  readonly document: DocumentName;
  /** The names, as the document has them. */
  readonly says: readonly string[];
  readonly ours: string;
  readonly kind: "as written" | "better";
  /** Why it is better. */
  readonly reason?: string;
  readonly heldBy: CheckName | TestName;
}

/** What documents.test.ts tries by itself, on one server with `toolPrefix: "wksm"` and one without. */
export const checkNames = [
  "tools of the prefix",
  "config tool",
  "monitor tools",
  "transform tool",
  "terminal twins",
  "in process",
  "envelope",
  "async in the listing",
  "names without a prefix",
  "diagnosis as a task",
  "flags of diagnose",
  "call's own facts",
  "progress by token",
] as const;
export type CheckName = (typeof checkNames)[number];

interface TestName {
  /** From the repository's root. */
  readonly file: string;
  /** The test's title; of a `test.each`, how its title begins. */
  readonly title: string;
}

type Row = Omit<DocumentRow, "document">;
const asWritten = (says: readonly string[], ours: string, heldBy: Row["heldBy"]): Row => ({
  says,
  ours,
  kind: "as written",
  heldBy,
});
const better = (says: readonly string[], ours: string, reason: string, heldBy: Row["heldBy"]): Row => ({
  says,
  ours,
  kind: "better",
  reason,
  heldBy,
});
const scenario = (name: string, title: string): TestName => ({ file: `test/scenarios/${name}.test.ts`, title });
const unit = (name: string, title: string): TestName => ({ file: `test/${name}.test.ts`, title });

const jobMessages = scenario("jobs", "an estimate at once, progress, one result: message by message, with");
const jobErrors = scenario("jobs", "an error is a result, too: { success: false, data: {}, messages: [error] }");
const jobQuick = scenario(
  "jobs",
  "a fast command is answered plainly, bad arguments too, and who asked for nothing hears nothing",
);
const fields = scenario(
  "jobs",
  '_meta["meanwhile/tool"]: async as declared, taskModeRecommended as declared or by history',
);
const discovery = unit("command/catalog", "names a command by where its file lies");
const prefixes = unit("command/catalog", "a prefix goes in front of every name and counts for its length");
const added = unit("command/catalog", "follows files that are added, changed, broken, repaired, renamed and removed");
const sameEverywhere = unit(
  "system/pack/doors",
  "every command says the same as an envelope, in the terminal and over MCP, when it succeeds and when it fails",
);
const pathLess = "names of files and functions inside another program; what counts is what a client sees of them";

const wksAsync: readonly Row[] = [
  asWritten(
    ["wksm_monitor_sync", "path", "recursive", "tools/call", "name", "arguments"],
    'wksm_monitor_sync { path, recursive } with toolPrefix: "wksm"',
    "monitor tools",
  ),
  asWritten(["monitor_sync"], "monitor_sync", "names without a prefix"),
  asWritten(
    ["files_processed", "files_skipped", "files_updated", "duration_seconds"],
    "the same fields in data",
    "monitor tools",
  ),
  asWritten(
    ["wksm_vault_index", "wksm_transform_batch"],
    "wksm_vault_index, wksm_transform_batch",
    "tools of the prefix",
  ),
  asWritten(
    [
      "job_id",
      "data.job_id: str",
      "estimated_runtime_seconds",
      "data.estimated_runtime_seconds: float",
      "status",
      'data.status: "queued" | "running"',
      "queued",
      "success: true",
    ],
    'the answer to a client that declares experimental["meanwhile/jobs"]',
    jobMessages,
  ),
  asWritten(
    ["info", "messages", "text", "result", "success", "data"],
    "one info message that says how long it will take",
    jobMessages,
  ),
  better(
    [
      "notifications/progress",
      "progress",
      "message",
      "timestamp",
      '{ "job_id": "...", "progress": 0.0-1.0, "message": "...", "timestamp": "..." }',
    ],
    "the same fields, and progressToken beside them",
    "the protocol demands a token in notifications/progress; clients that know only the token understand it, too",
    jobMessages,
  ),
  asWritten(
    ["notifications/tool_result", '{ "job_id": "...", "result": MCPResult.to_dict(), "timestamp": "..." }'],
    "notifications/tool_result { job_id, result, timestamp }, once",
    jobMessages,
  ),
  better(
    ["error", "details"],
    "messages: [{ type: error, text }]; details with MEANWHILE_DEBUG=1",
    "a stack trace in an answer tells strangers about the server; it is in the log",
    jobErrors,
  ),
  better(
    [
      "async: true",
      "async",
      "async: bool",
      "description",
      "inputSchema",
      "type",
      "properties",
      "required",
      "object",
      "string",
      "boolean",
    ],
    '_meta["meanwhile/tool"].async beside description and inputSchema',
    "the protocol leaves no room for a field of one's own beside name and inputSchema, and has one for vendors",
    "async in the listing",
  ),
  better(
    [
      "_active_jobs",
      "_job_results",
      "_execute_tool_async",
      "_is_long_running_tool",
      "_execute_tool_sync",
      "_estimate_runtime",
      "_handle_call_tool",
    ],
    "jobs are tasks on disk, run by a worker",
    "what a thread of the server holds is gone with the server",
    scenario("jobs", "the result can be fetched as well, and two jobs do not get mixed up"),
  ),
  better(
    ["_write_notification", "_send_progress_notification", "_send_result_notification", "_write_response"],
    "sent to the connection that asked",
    pathLess,
    jobMessages,
  ),
  better(["MCPResult", "to_dict", "add_info"], "the envelope that every tool answers with", pathLess, "envelope"),
  asWritten(["jsonrpc", "id", "method", "params"], "JSON-RPC 2.0", "monitor tools"),
  asWritten(["fast tools"], "a fast command is answered at once", jobQuick),
];

const wksLayer: readonly Row[] = [
  asWritten(["wksm_config", "cmd_show"], 'wksm_config { section } with toolPrefix: "wksm"', "config tool"),
  asWritten(["wksm_monitor_status"], "wksm_monitor_status", "monitor tools"),
  asWritten(["wksm_database_list"], "wksm_database_list", "tools of the prefix"),
  asWritten(
    ["wksm_transform", "file_path", "engine"],
    "wksm_transform { file_path, engine }; its own name for the argument is file",
    "transform tool",
  ),
  asWritten(
    ["wksm_<domain>_<command>", "wksm_{domain}_{command}", "wksm_<domain>_<name>", "<domain>"],
    "<toolPrefix>_<domain>_<command>",
    prefixes,
  ),
  asWritten(
    ["wksc config", "wksc monitor status", "wksc database list"],
    "meanwhile config, meanwhile monitor status, meanwhile database list",
    "terminal twins",
  ),
  better(
    ["call_tool", "call_tool()"],
    'callTool("wksm_config", {}, { toolPrefix: "wksm" }) of meanwhile/testing',
    "a promise, because commands are; it names the prefix that the config would",
    "in process",
  ),
  asWritten(
    ["success", "data", "messages", "log", "output"],
    "structuredContent { success, data, messages, log? }",
    "envelope",
  ),
  better(
    ["Message", "type", "content", "timestamp", "info"],
    "messages: [{ type, text, timestamp }]",
    "the other document of the same system says text, and content is the protocol's word for something else",
    "envelope",
  ),
  better(
    ["MessageType"],
    "error, warning, info, status and success",
    "success is the fifth, because a finished run has one",
    "envelope",
  ),
  asWritten(
    ["wks/api/", "_", "cmd_*.py", "wks/api/<domain>/cmd_<name>.py", "cmd_<name>"],
    "commands/<domain>/<name>.ts; names that begin with _ are passed over",
    discovery,
  ),
  better(
    ["wks/api/<domain>/app.py", "{domain}_app", "db_app", "handle_stage_result"],
    "nothing to register",
    "one file is the command, its schema and its words in the terminal",
    added,
  ),
  asWritten(
    ["wks/mcp", "wks/cli", "wks/cli/", "wks/mcp/server.py"],
    "no change to either layer for a new command",
    added,
  ),
  better(
    ["StageResult", "_extract_data_from_stage_result", "Display", "MCPDisplay", "display.py"],
    "announce, progress, result, output: task.announce, task.progress, summarize, what run returns",
    "a command says what happens, and each door shows it its own way",
    sameEverywhere,
  ),
  better(["MCPResult", "to_dict", "result.py"], "the envelope", pathLess, "envelope"),
  better(
    [
      "get_typer_command_schema",
      "get_typer_command_schema()",
      "str",
      "None",
      "str | None",
      "description",
      "properties",
      "required",
    ],
    "one schema for the terminal and for MCP",
    "neither is read off the other",
    unit("command/command", "describes input and output as JSON Schema, defaults not required"),
  ),
  better(
    [
      "_define_tools()",
      "MCPServer._define_tools()",
      "_build_tool_registry()",
      "_handle_call_tool()",
      "server.py",
      "__init__.py",
    ],
    "the catalog",
    pathLess,
    discovery,
  ),
  better(
    ["_require_params"],
    "every argument is checked against the schema",
    "a missing one is told to the model by its name",
    unit(
      "fundamentals/commands",
      "Wrong arguments are answered with the field and the reason, so that a model can correct itself.",
    ),
  ),
  asWritten(
    ["mcp_socket_path()", "{WKS_HOME}/mcp.sock", "paths.py"],
    "<home>/mcp.sock",
    scenario(
      "daemon",
      "the bundled commands have one daemon wherever a stdio proxy is started, at a place that everybody knows",
    ),
  ),
  asWritten(
    ["setup.py"],
    "meanwhile setup",
    unit("setup/hosts", "%s: added, added again, removed, and every byte is as it was"),
  ),
  asWritten(
    ["bridge.py"],
    "the daemon that every session shares",
    scenario("daemon", "two hosts share a daemon, and each call waits as long as its own host does"),
  ),
  asWritten(
    ["client.py"],
    "a front that pumps stdio to the daemon's socket",
    unit(
      "system/daemon/daemon",
      "a front's stdout holds nothing but messages, whatever commands print, from threads too",
    ),
  ),
];

const completion = (title: string) => unit("completion/documented", title);
const tokens = (title: string) => unit("task/token-progress", title);

const erlmcp: readonly Row[] = [
  better(
    ["erlmcp_progress:generate_token", "erlmcp_server.erl"],
    "the client's own token",
    "the protocol says that the client makes it, so that it knows the token before the work ends",
    scenario(
      "progress-rules",
      "P1: progress rises with every notification, whatever a command reports, on both revisions",
    ),
  ),
  better(
    ["erlmcp_progress:track_tool_call"],
    "every call with a token is tracked by itself",
    "nobody can forget to",
    tokens("a token tells how far its call is"),
  ),
  better(
    ["erlmcp_progress:send_progress", "send_progress"],
    "task.progress({ percentage | done, total, message, context })",
    "a command needs neither token nor transport",
    unit("fundamentals/commands", "What a command reports reaches the client that asked for it."),
  ),
  asWritten(
    ["erlmcp_progress:get_progress"],
    "progressOf(token), meanwhile tasks progress <token>",
    "progress by token",
  ),
  asWritten(["erlmcp_progress:list_active_tokens"], "listProgress(), meanwhile tasks progress", "progress by token"),
  better(
    ["erlmcp_progress:check_timeout", "timeout", "{error, timeout}"],
    "progressOf(token) says timeout",
    "a check that changes nothing; a silent call that lives keeps its token",
    tokens(
      "a silent call that somebody works on keeps its token; after half a minute without a worker it is a timeout",
    ),
  ),
  better(
    ["erlmcp_progress:cleanup_completed"],
    "a token goes when its call ends, when its client is gone, or after 30 s without a worker",
    "nobody can forget to",
    tokens("what nobody knows, has ended, is another caller's or has no token is token_not_found"),
  ),
  asWritten(
    ["token_not_found", "{error, token_not_found}"],
    "progressOf(token) says token_not_found",
    "progress by token",
  ),
  better(
    ["no_client_pid"],
    "there is none: a call has its client",
    "the guard of the original made it unreachable, too",
    scenario("progress-tokens", "is gone with it, and the work goes on:"),
  ),
  asWritten(
    ["Client Monitoring"],
    "the token of a client that died is gone at once",
    scenario("progress-tokens", "is gone with it, and the work goes on:"),
  ),
  better(
    ["~500 bytes per token", "1000+ concurrent tokens"],
    "a token is a field of its call's record",
    "it takes no memory of its own, and outlives the process",
    tokens("more tokens than fit on a page are all there"),
  ),
  better(
    ["_meta", "duration", "progressToken", "content"],
    '_meta["meanwhile/call"] { durationMs, progressToken }',
    "a key of a vendor's own has its name in front, and a unit",
    "call's own facts",
  ),
  better(
    ["notifications/progress", "percentage", "message", "context of progress"],
    'progress and total of the protocol, percentage and context under _meta["meanwhile/progress"]',
    "a notification without progress is none; values only grow",
    unit("task/progress", "the first report fixes the scale, later forms are put on it"),
  ),
  better(
    ["absolute", "current_stage", "models_processed", "stage", "models", "elapsed_time"],
    "{ done, total } and any context",
    "two names say which number is which",
    unit("task/progress", "the first report fixes the scale, later forms are put on it"),
  ),
  asWritten(
    [
      "completion/complete",
      "name",
      "partial_argument",
      "arguments",
      "context",
      "analyze_document",
      "format",
      "previous_file",
    ],
    "completion/complete { name, partial_argument, arguments, context }",
    scenario("completions", "are completed over %s, whichever revision the client speaks"),
  ),
  asWritten(
    ["completion", "values", "total", "hasMore"],
    "{ completion: { values, total, hasMore } }",
    completion("completion/complete: the value of the argument that is being typed"),
  ),
  asWritten(
    ["erlmcp_completion_context:complete", "erlmcp_completion_context:generate_completions_from_schema", "param1"],
    "complete(schema, request)",
    completion("the name of an argument, from its first letters, with others given"),
  ),
  asWritten(
    ["erlmcp_completion_context:resolve_context", "author_ref", "category", "user_id", "timestamp"],
    "resolveContext(arguments, context)",
    completion("resolve a context"),
  ),
  asWritten(
    ["erlmcp_completion_context:resolve_argument_reference", "$.field", "$.fieldname", "not_found"],
    "resolveReference(reference, arguments, context)",
    completion("resolve one reference"),
  ),
  asWritten(
    ["erlmcp_completion_context:filter_completions"],
    "filterCompletions(values, prefix)",
    completion("filter"),
  ),
  asWritten(
    ["completion_failed"],
    "a bad schema is completion_failed, with a reason",
    completion("a bad schema is completion_failed, with a reason"),
  ),
  asWritten(
    ["enum", "type", "description"],
    "values of an enum that begin so",
    completion("enum: matching values, filtered by what was typed"),
  ),
  asWritten(
    ["properties", "firstName", "lastName", "email"],
    "the names of the properties",
    completion("object: the names of its properties"),
  ),
  asWritten(["minimum", "maximum"], "numbers of the range", completion("number range: numbers of the range")),
  asWritten(["pattern"], "texts that match", completion("pattern: texts that match it")),
  asWritten(["jsonrpc", "id", "method", "params", "result", "text"], "JSON-RPC 2.0", "call's own facts"),
  better(
    ["--module", "rebar3 eunit", "make test", "make test-unit"],
    "npx vitest run <file>",
    "another language's test runner",
    completion("filter"),
  ),
];

const cortexdx: readonly Row[] = [
  asWritten(
    ["diagnose_mcp_server", "endpoint", "full", "name", "arguments"],
    "diagnose_mcp_server { endpoint, full }; its own name is diagnose_server { url, full }",
    "diagnosis as a task",
  ),
  asWritten(
    ["tools/call", "task", "ttl", "taskId", "status", "createdAt", "pollInterval", "working"],
    "params.task { ttl } is answered with { task: { taskId, status, createdAt, ttl, pollInterval } }",
    "diagnosis as a task",
  ),
  better(
    ["tasks/get", "statusMessage", "completed"],
    "tasks/get { taskId } is answered with the task itself, with lastUpdatedAt",
    "the specification that came of the draft has no { task } around it there",
    "diagnosis as a task",
  ),
  better(
    ["tasks/result", "result", "content", "text", "type"],
    "tasks/result waits for the end",
    "the specification says so; a client need not poll",
    scenario("tasks-2025", "tasks/result waits while the task is working or input_required, and answers when it ends"),
  ),
  asWritten(
    ["tasks/list", "tasks", "limit", "cursor", "nextCursor"],
    "tasks/list { limit, cursor } is answered with { tasks, nextCursor }",
    scenario("tasks-2025", "tasks/list takes a limit from 1 to 100 and refuses any other"),
  ),
  better(
    ["tasks/cancel"],
    "tasks/cancel stops the work, and a task that has ended is refused",
    "a late result never overwrites a cancel",
    scenario("tasks", "`tasks cancel` stops the command, and is final"),
  ),
  asWritten(
    [
      "--async",
      "--task-ttl <ms>",
      "--poll-interval <ms>",
      "--task-ttl",
      "--poll-interval",
      "--full",
      "--no-color",
      "300000",
      "5000",
      "false",
      "cortexdx diagnose",
    ],
    "meanwhile diagnose <url> --async --task-ttl 300000 --poll-interval 5000 --full --no-color",
    "flags of diagnose",
  ),
  asWritten(
    ["Example Output"],
    "the story of the task: its id, each status with its time, the end",
    scenario("diagnose", "--async prints the story of its task, and --task takes it up again"),
  ),
  asWritten(
    ["input_required"],
    "a task that asks is answered in the terminal, by task_answer or by elicitation",
    scenario("tasks", "a question waits for its answer, which another terminal may give"),
  ),
  asWritten(
    ["crypto.randomUUID()"],
    "task ids of 122 random bits",
    scenario(
      "task-ids",
      "T1: twenty thousand task ids: none repeats, no beginning is shared, at least 122 random bits, made by node:crypto",
    ),
  ),
  better(
    ["TaskExecutor"],
    "a worker with leases, fences and limits",
    "a task survives kill -9, and one that died is found",
    unit("system/cli/tasks", "after kill -9 of its worker, `tasks watch` starts another one, which finishes the task"),
  ),
  better(
    ["sampling/createMessage", "elicitation/create"],
    "a command asks by task.ask, which is elicitation/create where a client has that",
    "sampling is leaving the protocol",
    scenario(
      "tasks-2025",
      "a question goes out once, as elicitation/create with the task's id in _meta, and its answer takes the task out of input_required",
    ),
  ),
  better(
    ["cortexdx_academic_research", "cortexdx_deepcontext_index"],
    "every command can be a task",
    "the document only announces them; a list of supported tools is not needed",
    scenario(
      "tasks-2025",
      "tools/call with params.task answers at once with a task: a string id, working, createdAt, lastUpdatedAt, ttl, pollInterval, and no result",
    ),
  ),
  better(
    ["CORTEXDX_TASKS_DB", ".cortexdx/tasks.db"],
    "MEANWHILE_STORE, <home>/tasks.db",
    "one place for every folder, so that a task is found again from anywhere",
    scenario("tasks-2025", "one that cannot even be opened is -32603 as well, with a sentence that names no path"),
  ),
  better(
    ["userId", "expiresAt", "error", "method", "params"],
    "caller, expiresAt and outcome of the record; every look goes through the caller",
    "there the owner was never recorded, and everybody saw every task",
    scenario("task-access", "T3: tasks/list shows a caller's own tasks, all of them, and nobody else's"),
  ),
  better(
    ["pruned every 5 minutes"],
    "every minute",
    "what has expired is unknown from that moment, whether or not it was swept",
    {
      file: "test/store-suite/cases/cleaning.ts",
      title: "sweep: removes what has expired, of every caller, and nothing else",
    },
  ),
  better(
    [
      "runPlugins",
      "executeDiagnoseAsync",
      "diagnosticArgs",
      "taskTtl",
      "headers",
      "suites",
      "deterministic",
      "budgets",
      "timeMs",
      "memMb",
      "Before",
      "After",
      "import",
      "parse",
      "true",
    ],
    "diagnose({ url, headers, suites, isFull, isDeterministic, budgetMs, memoryMb }) of meanwhile/diagnose; callTool of meanwhile/client for the task",
    "one function whichever way it runs, and a report that need not be parsed",
    unit("diagnose/public", "diagnose() resolves with a report and compare() says what changed"),
  ),
  better(
    ["Task not found or expired"],
    "There is no such task; it may have expired.",
    "unknown, expired and foreign ids are answered alike, so that nothing is told",
    scenario(
      "task-access",
      "T4: an id of somebody else's, one that has expired and one that never was are answered alike, byte for byte",
    ),
  ),
  better(
    ["exponential backoff"],
    "the client does it by itself",
    "nobody has to remember it",
    unit("client/connection/pauses", "comes later the less happens, and after five intervals at the latest"),
  ),
  asWritten(["jsonrpc", "id"], "JSON-RPC 2.0", "diagnosis as a task"),
];

const muninn: readonly Row[] = [
  asWritten(
    ["ingest_sources", "ingest_legacy_sources", "discover_legacy_sources"],
    "the same names; those of the last two are ingest_legacy and ingest_discover",
    "names without a prefix",
  ),
  better(
    ["MUNINN_MCP_AUTO_TASK_FOR_LONG_TOOLS", "1"],
    "MEANWHILE_AUTO_TASK (default 1)",
    "another program's name",
    scenario("deferral", "MEANWHILE_AUTO_TASK=0: only what the client asked for"),
  ),
  better(
    ["MUNINN_MCP_AUTO_TASK_TOOL_NAMES"],
    "MEANWHILE_AUTO_TASK_TOOLS, aliases included",
    "commands say themselves that they are long, and history adds",
    scenario("deferral", "MEANWHILE_AUTO_TASK_TOOLS: these are long, and no longer those that say so"),
  ),
  better(
    ["MUNINN_MCP_AUTO_TASK_REQUIRE_CLIENT_CAP", "0"],
    "MEANWHILE_AUTO_TASK_REQUIRE_CLIENT_CAP (default 0)",
    "without it, a client without tasks gets a handle that it can follow by ordinary calls, and not a task it cannot read",
    scenario("deferral", "MEANWHILE_AUTO_TASK_REQUIRE_CLIENT_CAP=1: clients without tasks wait for the answer"),
  ),
  asWritten(
    ["tools/call", "params.task", "tasks"],
    "what the client asked for is left as it is",
    unit("task/deferral", "a task it asked for is made, whatever the command, the host and the settings say"),
  ),
  better(
    [
      "mcp_wrapper.py",
      "_get_auto_task_tool_names()",
      "_client_declared_tasks_capability()",
      "_should_auto_task_tool_call(...)",
    ],
    "decide(facts, rules)",
    "one pure function, tested by itself; its reason is on record",
    unit("task/deferral", "for a long command, where the client takes tasks"),
  ),
  better(
    ["120s"],
    "a budget for each host, and a margin",
    "120 s is one host's limit",
    unit("task/deferral", "any other client gets a plain handle just before its host cuts the call"),
  ),
  asWritten(["task mode recommended", "tools/list"], '_meta["meanwhile/tool"].taskModeRecommended', fields),
  asWritten(
    ["p95 wall-time counters"],
    "meanwhile stats, meanwhile://stats",
    scenario("jobs", "resource meanwhile://stats: totals over all callers, and no callers"),
  ),
  asWritten(
    ["server-side progress notifications"],
    "progress of tasks, on every road",
    scenario("tasks-2025", "creates a task, polls it, sees its progress and fetches its result"),
  ),
  better(
    [
      "python -m pytest -q tests/test_mcp_wrapper_protocol.py tests/test_mcp_transport_soak.py",
      "82 passed",
      "python -m pytest -q tests/test_memory_user_profile.py tests/test_ingestion_discovery.py",
      "5 passed",
    ],
    "npm test",
    "another language's test runner",
    scenario(
      "deferral",
      "none set: a long command is deferred at once, as whatever its client can take; a quick one never",
    ),
  ),
];

const ofDocument = (document: DocumentName, rows: readonly Row[]): DocumentRow[] =>
  rows.map((row) => ({ document, ...row }));

export const documentRows: readonly DocumentRow[] = [
  ...ofDocument("wks-async-tools", wksAsync),
  ...ofDocument("wks-mcp-layer", wksLayer),
  ...ofDocument("erlmcp-progress-and-completion", erlmcp),
  ...ofDocument("cortexdx-tasks-api", cortexdx),
  ...ofDocument("muninn-auto-task-deferral", muninn),
];
