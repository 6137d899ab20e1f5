/**
 * Every MUST, MUST NOT and REQUIRED of the two Tasks documents, and the test that holds it. requirements.test.ts fails
 * on a gap, and scripts/requirements.mjs writes the table of docs/protocol.md.
 *
 * 25-tasks-…  docs/specification/2025-11-25/basic/utilities/tasks.mdx of modelcontextprotocol/modelcontextprotocol at
 *             b0f60ba5, and what its pages on progress and cancellation ask of tasks.
 * 26-tasks-…  specification/draft/tasks.md of modelcontextprotocol/ext-tasks at e434597; 26-tasks-sep-… is what only
 *             SEP-2663 (Final, in the same repository) says about the two generations side by side.
 *
 * One row a rule: a rule that stands in several sections names them all, a sentence with several rules has several
 * rows.
 */
export interface Requirement {
  readonly id: `25-tasks-${string}` | `26-tasks-${string}`;
  /** The rule in our own words. */
  readonly says: string;
  /** The heading it stands under; several are separated by a semicolon. */
  readonly where: string;
  readonly on: "server" | "client" | "both";
  /** Of a rule on clients: the tests of what the server does about it. */
  readonly heldBy: readonly TestName[];
  /** Why no test of a server can hold it. */
  readonly why?: string;
}

interface TestName {
  /** From the repository's root. */
  readonly file: string;
  /** The test's title; of a `test.each`, how its title begins. */
  readonly title: string;
}

const core = testsOf("test/scenarios/tasks-2025.test.ts", {
  declares:
    "initialize declares tasks with tools/call and cancel, and list only for a caller who can be told from others",
  ignoresTask:
    "params.task is ignored where no task capability was declared: on tools/list, and on tools/call of a 2025-06-18 client",
  extensionIsNothing:
    "the extension's capability means nothing on 2025-11-25: a call without params.task is answered as to a client without tasks",
  creates:
    "tools/call with params.task answers at once with a task: a string id, working, createdAt, lastUpdatedAt, ttl, pollInterval, and no result",
  ownId: "a taskId that the client sends along is not used: the server makes its own",
  overHttp:
    "over HTTP every tasks request is one POST, answered by one JSON body or one stream that ends with its response",
  asks: "a question goes out once, as elicitation/create with the task's id in _meta, and its answer takes the task out of input_required",
  resultOfEnded:
    "tasks/result of a completed, a failed and a cancelled task answers at once with its final result or JSON-RPC error",
  resultWaits: "tasks/result waits while the task is working or input_required, and answers when it ends",
  resultIsTheCalls:
    "tasks/result is what the same call gives without a task, isError included, with the related task in _meta",
  resultIsTheError: "a call that ends in a JSON-RPC error gives the same error from tasks/result",
  namesTask:
    "question, progress and result of a task name it in _meta; the answers of tasks/get, tasks/list and tasks/cancel do not",
  goesByParam: "tasks/get, tasks/result and tasks/cancel go by params.taskId, whatever related task their _meta names",
  lists: "tasks/list gives a nextCursor while there is more, and every task that tasks/get finds exactly once",
  storeFails: "a store that fails is -32603 from every tasks method, and nothing of its inside is told",
});

const extension = testsOf("test/scenarios/tasks-2026.test.ts", {
  declares:
    "server/discover declares the extension as an empty object, and nothing of the tasks capability of 2025-11-25",
  creates:
    "tools/call of a long command answers with a flat handle of resultType task, which ext-tasks drives to the result",
  onlyHandles:
    "only a handle has resultType task: inline results, tasks/get, tasks/update and tasks/cancel are complete",
  isThereAtOnce:
    "tasks/get finds a task from the moment its handle arrives, also on another connection and in another process",
  gets: "tasks/get answers working, input_required, completed, failed and cancelled, each with its own inputRequests, result or error",
  updates: "tasks/update is acknowledged with an empty complete result, and the task goes on with the answer",
  cancels: "tasks/cancel is acknowledged with an empty complete result, and the work is stopped",
  resultIsTheCalls:
    "the inlined result is what the same call gives without a task, isError included, marked complete and without a related task",
  resultIsTheError: "a call that ends in a JSON-RPC error is failed, with that same error inlined",
  legacyOnly: "a client that declares only the tasks capability of 2025-11-25 gets no handle",
  ignoresTask: "params.task is an unknown field: it makes no task and is no error",
  storeFails: "a store that fails is -32603 from every tasks method, and nothing of its inside is told",
});

const eras = testsOf("test/scenarios/eras.test.ts", {
  e2: "E2: a tool result with isError is failed on 2025-11-25, and completed on 2026-07-28",
  e3: "E3: cancelling an ended task is refused with -32602 on 2025-11-25, and acknowledged on 2026-07-28",
  e4: "E4: on 2025-11-25 a task is cancelled before the answer and stays so; on 2026-07-28 it is acknowledged, and an ending that came first stands",
  e5: "E5: a task's progress keeps the call's token until its end on 2025-11-25, and is sent on no stream on 2026-07-28",
  e6: "E6: tasks/list and tasks/result answer on 2025-11-25, and are unknown methods on 2026-07-28: -32601, HTTP 404",
  e8: "E8: a call that needs a task its client did not opt in to is -32601 on 2025-11-25, and -32021 with HTTP 400 on 2026-07-28",
});

const rules = {
  ...testsOf("test/scenarios/task-ids.test.ts", {
    t1: "T1: twenty thousand task ids: none repeats, no beginning is shared, at least 122 random bits, made by node:crypto",
    t9: "T9: an id that is unknown, malformed or no string is -32602 from every tasks method",
  }),
  ...testsOf("test/system/task-states.test.ts", {
    t6: "T6: whatever is seen of a task, its statuses follow the allowed paths, and a terminal one is the last",
  }),
  ...testsOf("test/system/task-durable.test.ts", {
    t7: "T7: a result reads the same every time, also after a restart and after a late worker",
    t8: "T8: a task whose handle was sent is there after kill -9",
  }),
  ...testsOf("test/scenarios/task-questions.test.ts", {
    t11: "T11: an answer to a key that is not open is ignored, __proto__ and constructor among them",
  }),
  ...testsOf("test/system/task-questions.test.ts", {
    t10: "T10: no key is used twice in a task's life, also across a crash",
    t12: "T12: every open question is shown, and answering some leaves the others open, also after a restart",
  }),
  ...testsOf("test/scenarios/task-requests.test.ts", {
    t13: "T13: a request without the extension's capability gets no handle, and -32021 from tasks/get, update, cancel and a listen with taskIds",
    t14: "T14: notifications/cancelled with the id of the call that made a task leaves the task alone",
    t21: "T21: a tasks request whose Mcp-Name is missing or names another task is refused with -32020 and HTTP 400",
    t22: "T22: a tool called against its taskSupport, as a task or not as one, is refused with -32601",
  }),
  ...testsOf("test/scenarios/task-ttl.test.ts", {
    t15: "T15: every answer about a task carries createdAt, lastUpdatedAt and the ttl that was asked for",
  }),
  ...testsOf("test/scenarios/progress-rules.test.ts", {
    p2: "P2: no progress is sent after the end of a call or a task",
  }),
};

const access = testsOf("test/scenarios/task-access.test.ts", {
  t2: "T2: only its owner reaches a task",
  badCursor: "T4: a cursor that was forged, or given to somebody else, is refused with -32602, alike",
  t3: "T3: tasks/list shows a caller's own tasks, all of them, and nobody else's",
});

/** Tests that were there before tasks came to the wire. */
const store = {
  ...testsOf("test/system/store/model.test.ts", {
    model: "whatever callers and workers do, all stores show what the rules say, and the promises hold",
  }),
  ...testsOf("test/system/store/sqlite-faults.test.ts", {
    reachesDisk: "T8: what is acknowledged has been through the disk's cache",
  }),
  ...testsOf("test/store-suite/cases/creating.ts", {
    takenId: "create: an id that is taken is refused, and the task there stays as it is",
  }),
  ...testsOf("test/store-suite/cases/asking.ts", {
    freshKeys: "ask: a key is never used twice, also after answers, a retry and a crash",
  }),
  ...testsOf("test/store-suite/cases/listing.ts", {
    pages: "list: pages hold everything once, and the last one has no cursor",
    badCursor: "list: a cursor that is not ours is refused",
  }),
  ...testsOf("test/task/engine.test.ts", {
    cancelIsFinal: "cancel is final: the worker is told, its late result is refused",
  }),
  ...testsOf("test/chaos/chaos.test.ts", {
    chaos: "kill -9 at every named step and at any moment: nothing is lost, nothing changes, nothing is done twice",
  }),
  ...testsOf("test/system/faults.test.ts", {
    twoCallers: "two callers with 500 tasks each never meet, by any verb; a foreign id is answered as a made-up one",
  }),
};

const referee = testsOf("test/system/conformance/conformance.test.ts", {
  core: "official conformance, requirements 2025-11-25: 84 passed, 0 failed",
});

export const requirements: readonly Requirement[] = [
  // 2025-11-25
  {
    id: "25-tasks-capability",
    says: "Who takes task-augmented requests declares a `tasks` capability when the connection begins.",
    where: "Capabilities",
    on: "both",
    heldBy: [core.declares],
  },
  {
    id: "25-tasks-client-undeclared",
    says: "No tool is called as a task on a server that does not declare `tasks.requests.tools.call`.",
    where: "Tool-Level Negotiation",
    on: "client",
    heldBy: [core.ignoresTask],
    why: "The client chooses what it sends. Where the capability is missing, the server ignores the wish.",
  },
  {
    id: "25-tasks-client-forbidden",
    says: "No tool is called as a task whose `taskSupport` is `forbidden` or absent.",
    where: "Tool-Level Negotiation",
    on: "client",
    heldBy: [rules.t22],
    why: "The client chooses what it sends. The server refuses it, as it should.",
  },
  {
    id: "25-tasks-client-required",
    says: "A tool whose `taskSupport` is `required` is called as a task.",
    where: "Tool-Level Negotiation",
    on: "client",
    heldBy: [rules.t22],
    why: "The client chooses what it sends. The server's half is 25-tasks-required-refused.",
  },
  {
    id: "25-tasks-required-refused",
    says: "A call that is no task, of a tool whose `taskSupport` is `required`, is answered with −32601.",
    where: "Tool-Level Negotiation",
    on: "server",
    heldBy: [rules.t22, eras.e8],
  },
  {
    id: "25-tasks-http",
    says: "Tasks change nothing about Streamable HTTP: polling, waiting for a result and asking keep to its rules.",
    where: "Getting Tasks; Retrieving Task Results; Input Required Status",
    on: "both",
    heldBy: [core.overHttp, core.asks, referee.core],
  },
  {
    id: "25-tasks-client-polls",
    says: "Nobody counts on `notifications/tasks/status`: it may never come.",
    where: "Task Status Notification; Task Notifications",
    on: "client",
    heldBy: [],
    why: "What a client counts on cannot be seen from the server, and tasks/get tells everything the notification would.",
  },
  {
    id: "25-tasks-undeclared-ignored",
    says: "A request of a type without the task capability is answered as usual, whatever `task` it carries.",
    where: "Task Support and Handling",
    on: "server",
    heldBy: [core.ignoresTask],
  },
  {
    id: "25-tasks-id-string",
    says: "A task id is a string.",
    where: "Task ID Requirements",
    on: "server",
    heldBy: [core.creates],
  },
  {
    id: "25-tasks-id-own",
    says: "The side that runs the task makes up its id.",
    where: "Task ID Requirements",
    on: "server",
    heldBy: [core.ownId],
  },
  {
    id: "25-tasks-id-unique",
    says: "No two tasks of a server have the same id.",
    where: "Task ID Requirements",
    on: "server",
    heldBy: [rules.t1, store.takenId],
  },
  {
    id: "25-tasks-begins-working",
    says: "A new task is `working`.",
    where: "Task Status Lifecycle",
    on: "server",
    heldBy: [core.creates, rules.t6],
  },
  {
    id: "25-tasks-paths",
    says: "`working` and `input_required` lead to each other and to an end; there is no other way.",
    where: "Task Status Lifecycle",
    on: "server",
    heldBy: [rules.t6, store.model],
  },
  {
    id: "25-tasks-terminal",
    says: "`completed`, `failed` and `cancelled` are final.",
    where: "Task Status Lifecycle",
    on: "server",
    heldBy: [rules.t6, store.model, store.chaos],
  },
  {
    id: "25-tasks-question-names-task",
    says: "A request for input says in its `_meta` which task it belongs to.",
    where: "Input Required Status",
    on: "server",
    heldBy: [core.asks],
  },
  {
    id: "25-tasks-created-at",
    says: "Every answer about a task says when it was created, as an ISO 8601 time.",
    where: "TTL and Resource Management",
    on: "server",
    heldBy: [rules.t15],
  },
  {
    id: "25-tasks-last-updated-at",
    says: "Every answer about a task says when it last changed, as an ISO 8601 time.",
    where: "TTL and Resource Management",
    on: "server",
    heldBy: [rules.t15],
  },
  {
    id: "25-tasks-ttl",
    says: "tasks/get tells the ttl that really holds, or null for none.",
    where: "TTL and Resource Management",
    on: "server",
    heldBy: [rules.t15],
  },
  {
    id: "25-tasks-create-result",
    says: "A request accepted as a task is answered with the task, not with its result.",
    where: "Result Retrieval",
    on: "server",
    heldBy: [core.creates],
  },
  {
    id: "25-tasks-result-ended",
    says: "tasks/result of an ended task gives its final result or error, however it ended.",
    where: "Result Retrieval",
    on: "server",
    heldBy: [core.resultOfEnded],
  },
  {
    id: "25-tasks-result-waits",
    says: "tasks/result of a live task is answered when the task ends, not before.",
    where: "Result Retrieval",
    on: "server",
    heldBy: [core.resultWaits],
  },
  {
    id: "25-tasks-result-exact",
    says: "tasks/result gives exactly what the call itself would have given.",
    where: "Result Retrieval",
    on: "server",
    heldBy: [core.resultIsTheCalls, core.resultIsTheError, rules.t7],
  },
  {
    id: "25-tasks-related",
    says: "Every message that belongs to a task names it in `_meta`, under `io.modelcontextprotocol/related-task`.",
    where: "Associating Task-Related Messages; Related Task Metadata",
    on: "both",
    heldBy: [core.namesTask],
  },
  {
    id: "25-tasks-related-same",
    says: "A question that a tool call depends on names the task of that call.",
    where: "Associating Task-Related Messages",
    on: "server",
    heldBy: [core.asks],
  },
  {
    id: "25-tasks-id-param",
    says: "Which task tasks/get, tasks/result and tasks/cancel mean is said by `params.taskId`.",
    where: "Associating Task-Related Messages",
    on: "both",
    heldBy: [core.goesByParam],
  },
  {
    id: "25-tasks-related-ignored",
    says: "A related task in the `_meta` of these requests is ignored.",
    where: "Associating Task-Related Messages",
    on: "server",
    heldBy: [core.goesByParam],
  },
  {
    id: "25-tasks-next-cursor",
    says: "tasks/list gives a `nextCursor` when there is more.",
    where: "Task Listing",
    on: "server",
    heldBy: [core.lists, store.pages],
  },
  {
    id: "25-tasks-client-cursor",
    says: "A cursor is handed back as it came.",
    where: "Task Listing",
    on: "client",
    heldBy: [access.badCursor],
    why: "The client chooses what it sends. The server refuses a cursor that it did not give out.",
  },
  {
    id: "25-tasks-list-complete",
    says: "What a caller can get, the same caller's list holds.",
    where: "Task Listing",
    on: "server",
    heldBy: [core.lists, access.t3],
  },
  {
    id: "25-tasks-cancel-ended",
    says: "Cancelling an ended task is refused with −32602.",
    where: "Task Cancellation; Protocol Errors",
    on: "server",
    heldBy: [eras.e3],
  },
  {
    id: "25-tasks-cancel-first",
    says: "A task is `cancelled` before its cancel is answered.",
    where: "Task Cancellation",
    on: "server",
    heldBy: [eras.e4],
  },
  {
    id: "25-tasks-cancel-stays",
    says: "A cancelled task stays cancelled, whatever the work still brings.",
    where: "Task Cancellation",
    on: "server",
    heldBy: [eras.e4, store.cancelIsFinal],
  },
  {
    id: "25-tasks-result-related",
    says: "The answer of tasks/result names its task in `_meta`.",
    where: "Related Task Metadata",
    on: "server",
    heldBy: [core.resultIsTheCalls, core.namesTask],
  },
  {
    id: "25-tasks-unknown-id",
    says: "tasks/get, tasks/result and tasks/cancel of an id that is wrong or unknown are −32602.",
    where: "Protocol Errors",
    on: "server",
    heldBy: [rules.t9],
  },
  {
    id: "25-tasks-unknown-cursor",
    says: "tasks/list with a cursor that is wrong or unknown is −32602.",
    where: "Protocol Errors",
    on: "server",
    heldBy: [access.badCursor, store.badCursor],
  },
  {
    id: "25-tasks-internal-error",
    says: "What goes wrong inside is −32603.",
    where: "Protocol Errors",
    on: "server",
    heldBy: [core.storeFails],
  },
  {
    id: "25-tasks-result-error",
    says: "Where the call ended in a JSON-RPC error, tasks/result is that same error.",
    where: "Task Execution Errors",
    on: "server",
    heldBy: [core.resultIsTheError],
  },
  {
    id: "25-tasks-result-success",
    says: "Where the call ended in a result, tasks/result is a success with that result, also when it says `isError`.",
    where: "Task Execution Errors",
    on: "server",
    heldBy: [core.resultIsTheCalls],
  },
  {
    id: "25-tasks-bound",
    says: "A task belongs to the identity that made it, where there is one.",
    where: "Task Isolation and Access Control",
    on: "server",
    heldBy: [access.t2, store.twoCallers],
  },
  {
    id: "25-tasks-id-secret",
    says: "Where callers cannot be told apart, ids are random enough that nobody can guess one.",
    where: "Task Isolation and Access Control",
    on: "server",
    heldBy: [rules.t1],
  },
  {
    id: "25-tasks-foreign-refused",
    says: "tasks/get, tasks/result and tasks/cancel of somebody else's task are refused.",
    where: "Task Isolation and Access Control",
    on: "server",
    heldBy: [access.t2, store.twoCallers],
  },
  {
    id: "25-tasks-list-own",
    says: "tasks/list holds the caller's own tasks and nobody else's.",
    where: "Task Isolation and Access Control",
    on: "server",
    heldBy: [access.t3, store.twoCallers],
  },
  {
    id: "25-tasks-progress-token",
    says: "Progress of a task keeps the token of the call that made it, also after the call was answered.",
    where: "Progress: Behavior Requirements",
    on: "server",
    heldBy: [eras.e5],
  },
  {
    id: "25-tasks-progress-stops",
    says: "After the end of a task there is no more progress of it.",
    where: "Progress: Behavior Requirements",
    on: "server",
    heldBy: [rules.p2],
  },
  {
    id: "25-tasks-client-cancel-method",
    says: "A task is cancelled by tasks/cancel, not by `notifications/cancelled`.",
    where: "Cancellation: Behavior Requirements",
    on: "client",
    heldBy: [rules.t14],
    why: "The client chooses what it sends. To the server the notification means nothing for a task.",
  },

  // 2026-07-28
  {
    id: "26-tasks-only-declared",
    says: "A request that does not itself carry the extension's capability is never answered with a handle.",
    where: "Capability Negotiation",
    on: "server",
    heldBy: [rules.t13],
  },
  {
    id: "26-tasks-client-both-shapes",
    says: "Who declares the extension can take a result or a handle from every call that supports tasks.",
    where: "Capability Negotiation; SEP-2663, Backward Compatibility",
    on: "client",
    heldBy: [extension.creates],
    why: "What a client can take is its own matter; the official one is given both.",
  },
  {
    id: "26-tasks-client-unsupported",
    says: "A handle in answer to a method that supports no tasks is an invalid answer.",
    where: "Capability Negotiation",
    on: "client",
    heldBy: [],
    why: "The client judges the answer; the server makes handles in tools/call alone.",
  },
  {
    id: "26-tasks-needs-capability",
    says: "A call that can only be served as a task, from a client without the extension, is −32021 and names the extension.",
    where: "Capability Negotiation",
    on: "server",
    heldBy: [eras.e8],
  },
  {
    id: "26-tasks-handle-type",
    says: 'A handle says `resultType: "task"`.',
    where: "Polymorphic Results",
    on: "server",
    heldBy: [extension.creates],
  },
  {
    id: "26-tasks-handle-type-alone",
    says: 'Nothing but a handle says `resultType: "task"`.',
    where: "Polymorphic Results",
    on: "server",
    heldBy: [extension.onlyHandles],
  },
  {
    id: "26-tasks-failed-is-protocol",
    says: "`failed` is for JSON-RPC errors only, not for a result that says `isError`.",
    where: "Task Status; Task Execution Errors",
    on: "server",
    heldBy: [eras.e2],
  },
  {
    id: "26-tasks-durable",
    says: "A handle is sent when its task is durably there, not before.",
    where: "Task Creation",
    on: "server",
    heldBy: [rules.t8, store.reachesDisk, store.chaos],
  },
  {
    id: "26-tasks-consistent",
    says: "Where a task is not at once visible everywhere, the handle waits until it is.",
    where: "Task Creation",
    on: "server",
    heldBy: [extension.isThereAtOnce],
  },
  {
    id: "26-tasks-get",
    says: "tasks/get looks at the task's status and answers by it.",
    where: "Task Polling, Response",
    on: "server",
    heldBy: [extension.gets],
  },
  {
    id: "26-tasks-get-working",
    says: "A `working` task is shown as such.",
    where: "Task Polling, Response",
    on: "server",
    heldBy: [extension.gets],
  },
  {
    id: "26-tasks-get-input-required",
    says: "An `input_required` task is shown with its `inputRequests`.",
    where: "Task Polling, Response",
    on: "server",
    heldBy: [extension.gets],
  },
  {
    id: "26-tasks-get-all-inputs",
    says: "`inputRequests` holds every question that is open.",
    where: "Task Polling, Response",
    on: "server",
    heldBy: [rules.t12],
  },
  {
    id: "26-tasks-get-completed",
    says: "A `completed` task is shown with its final result.",
    where: "Task Polling, Response",
    on: "server",
    heldBy: [extension.gets],
  },
  {
    id: "26-tasks-get-cancelled",
    says: "A `cancelled` task is shown as such.",
    where: "Task Polling, Response",
    on: "server",
    heldBy: [extension.gets],
  },
  {
    id: "26-tasks-get-failed",
    says: "A `failed` task is shown with its error.",
    where: "Task Polling, Response; Task Execution Errors",
    on: "server",
    heldBy: [extension.gets],
  },
  {
    id: "26-tasks-get-type",
    says: 'tasks/get says `resultType: "complete"`.',
    where: "Task Polling, Response",
    on: "server",
    heldBy: [extension.onlyHandles],
  },
  {
    id: "26-tasks-client-input-trust",
    says: "A question that comes through a task is trusted no more, and shown no differently, than one asked directly.",
    where: "Task Update Requests; Security Considerations",
    on: "client",
    heldBy: [],
    why: "What a host trusts and shows is its own matter.",
  },
  {
    id: "26-tasks-key-unique",
    says: "Every key of `inputRequests` is unique in the life of its task.",
    where: "Task Update Requests",
    on: "server",
    heldBy: [rules.t10, store.freshKeys],
  },
  {
    id: "26-tasks-key-answered",
    says: "A key that was answered is never asked under again.",
    where: "Task Update Requests",
    on: "server",
    heldBy: [rules.t10, store.freshKeys],
  },
  {
    id: "26-tasks-key-one-question",
    says: "A key never means two different questions.",
    where: "Task Update Requests",
    on: "server",
    heldBy: [rules.t10],
  },
  {
    id: "26-tasks-client-open-keys",
    says: "Answers name only keys that are open.",
    where: "Task Update Requests, Request",
    on: "client",
    heldBy: [rules.t11],
    why: "The client chooses what it sends. The server ignores the others, as it should.",
  },
  {
    id: "26-tasks-update-ack",
    says: "tasks/update is acknowledged with an empty result.",
    where: "Task Update Requests, Response",
    on: "server",
    heldBy: [extension.updates],
  },
  {
    id: "26-tasks-update-type",
    says: 'tasks/update says `resultType: "complete"`.',
    where: "Task Update Requests, Response",
    on: "server",
    heldBy: [extension.updates, extension.onlyHandles],
  },
  {
    id: "26-tasks-client-cancel-method",
    says: "A task is not cancelled by `notifications/cancelled`.",
    where: "Task Cancellation",
    on: "client",
    heldBy: [rules.t14],
    why: "The client chooses what it sends. To the server the notification means nothing for a task.",
  },
  {
    id: "26-tasks-cancel-ack",
    says: "tasks/cancel is acknowledged with an empty result.",
    where: "Task Cancellation, Response",
    on: "server",
    heldBy: [extension.cancels, eras.e3],
  },
  {
    id: "26-tasks-cancel-type",
    says: 'tasks/cancel says `resultType: "complete"`.',
    where: "Task Cancellation, Response",
    on: "server",
    heldBy: [extension.cancels, extension.onlyHandles],
  },
  {
    id: "26-tasks-listen-capability",
    says: "subscriptions/listen with task ids, without the extension's capability, is −32021 and names the extension.",
    where: "Task Status Notifications; Protocol Errors",
    on: "server",
    heldBy: [rules.t13],
  },
  {
    id: "26-tasks-listen-no-progress",
    says: "The listen stream carries no `notifications/progress` and no `notifications/message` of a task.",
    where: "Task Status Notifications",
    on: "server",
    heldBy: [eras.e5],
  },
  {
    id: "26-tasks-client-mcp-name",
    says: "Over HTTP tasks/get, tasks/update and tasks/cancel carry the task id in `Mcp-Name`.",
    where: "Streamable HTTP: Routing Headers",
    on: "client",
    heldBy: [rules.t21],
    why: "The client sets its headers. The server refuses those that do not match.",
  },
  {
    id: "26-tasks-errors",
    says: "Protocol errors are JSON-RPC errors with the codes of the list: −32602, −32603, −32021.",
    where: "Protocol Errors",
    on: "server",
    heldBy: [rules.t9, rules.t13, extension.storeFails],
  },
  {
    id: "26-tasks-unknown-id",
    says: "tasks/get of an id that is wrong or unknown is −32602.",
    where: "Protocol Errors",
    on: "server",
    heldBy: [rules.t9],
  },
  {
    id: "26-tasks-methods-capability",
    says: "tasks/get, tasks/update and tasks/cancel without the extension's capability are −32021.",
    where: "Protocol Errors",
    on: "server",
    heldBy: [rules.t13],
  },
  {
    id: "26-tasks-tool-error-completed",
    says: "An error inside a result is `completed`, with the details in the result.",
    where: "Task Execution Errors",
    on: "server",
    heldBy: [eras.e2, extension.resultIsTheCalls],
  },
  {
    id: "26-tasks-error-same",
    says: "The inlined error is the JSON-RPC error that the call ended in.",
    where: "Task Execution Errors",
    on: "server",
    heldBy: [extension.resultIsTheError],
  },
  {
    id: "26-tasks-result-same",
    says: "The inlined result is the one that the call ended in.",
    where: "Task Execution Errors",
    on: "server",
    heldBy: [extension.resultIsTheCalls, rules.t7],
  },
  {
    id: "26-tasks-id-secret",
    says: "Ids are random enough that nobody can guess one or go through them.",
    where: "Security Considerations",
    on: "server",
    heldBy: [rules.t1],
  },
  {
    id: "26-tasks-authorized",
    says: "Every request about a task is checked: who asks, and whether the task is theirs.",
    where: "Security Considerations",
    on: "server",
    heldBy: [access.t2, store.twoCallers],
  },
  {
    id: "26-tasks-sep-not-on-2025",
    says: "On 2025-11-25 the extension's capability enables nothing.",
    where: "SEP-2663, Backward Compatibility",
    on: "server",
    heldBy: [core.extensionIsNothing],
  },
  {
    id: "26-tasks-sep-legacy-capability",
    says: "Who declares only the capability of 2025-11-25 has not declared the extension.",
    where: "SEP-2663, Backward Compatibility",
    on: "server",
    heldBy: [extension.legacyOnly],
  },
  {
    id: "26-tasks-sep-no-result-method",
    says: "tasks/result is gone: −32601.",
    where: "SEP-2663, Backward Compatibility",
    on: "server",
    heldBy: [eras.e6],
  },
  {
    id: "26-tasks-sep-task-param",
    says: "`params.task` of tools/call is a field like any unknown one.",
    where: "SEP-2663, Backward Compatibility",
    on: "server",
    heldBy: [extension.ignoresTask],
  },
  {
    id: "26-tasks-sep-declares",
    says: "A server that has tasks declares the extension.",
    where: "SEP-2663, Backward Compatibility",
    on: "server",
    heldBy: [extension.declares],
  },
  {
    id: "26-tasks-sep-no-legacy",
    says: "The capabilities of 2025-11-25 are not declared where the extension is.",
    where: "SEP-2663, Backward Compatibility",
    on: "server",
    heldBy: [extension.declares],
  },
  {
    id: "26-tasks-sep-client-looks",
    says: "A client looks at the `inputRequests` of a task that is `input_required`.",
    where: "SEP-2663, Task Status",
    on: "client",
    heldBy: [],
    why: "What a client looks at cannot be seen from the server.",
  },
];

/** Names the tests of one file. */
function testsOf<Key extends string>(
  file: string,
  titles: Readonly<Record<Key, string>>,
): Readonly<Record<Key, TestName>> {
  const named = Object.entries<string>(titles).map(([key, title]) => [key, { file, title }]);
  return Object.fromEntries(named) as Record<Key, TestName>;
}
