import { expect, test } from "vitest";
import { type AccessRule, ToolAccess } from "../../src/auth/access.ts";
import { Gate } from "../../src/auth/gate.ts";
import { InsufficientScope } from "../../src/auth/insufficient-scope.ts";
import { keyCaller, localUser } from "../../src/command/caller.ts";
import { mergeSources } from "../../src/command/catalog.ts";
import { fixedSource } from "../../src/command/code-source.ts";
import { defineCommand } from "../../src/command/command.ts";
import { silentLog } from "../../src/log.ts";
import { followUpsByName } from "../../src/mcp/generation/follow-up-names.ts";

const command = defineCommand({ summary: "Writes", scopes: ["write"], run: () => ({}) });
const entry = { toolName: "note_write", path: ["note", "write"], file: "", command };
const aliases = [{ name: "scribble", arguments: {} }];

function openGate(access: readonly AccessRule[] = []) {
  const catalog = mergeSources([fixedSource("the test", [{ ...entry, aliases }])], { log: silentLog });
  const followUps = followUpsByName({ followUpTools: true, toolPrefix: "acme" });
  return new Gate({ access: new ToolAccess({ access, listUngranted: true }), catalog, followUps });
}

/** What a request needs, for a key without scopes. */
function needOf(method: string | undefined, params: object = {}, access?: readonly AccessRule[]): readonly string[] {
  try {
    openGate(access).authorize({ caller: keyCaller("k1") }, method, params as Record<string, unknown>);
    return [];
  } catch (error) {
    if (error instanceof InsufficientScope) return error.scopes;
    throw error;
  }
}

const call = "meanwhile:call";
const read = "meanwhile:read";

test.each<[string | undefined, object, readonly string[]]>([
  ["tools/call", { name: "note_write" }, [call, "write"]],
  ["tools/call", { name: "scribble" }, [call, "write"]],
  ["tools/call", { name: "unknown" }, [call]],
  ["tools/call", { name: ["note_write"] }, [call]],
  ["completion/complete", { name: "note_write" }, [read, "write"]],
  ["completion/complete", { ref: { type: "ref/prompt", name: "scribble" } }, [read, "write"]],
  ["completion/complete", { ref: null, name: "note_write" }, [read]],
  ["prompts/get", { name: "note_write" }, [read]],
  ["tools/call", { name: "acme_task_result", arguments: { job_id: "x" } }, [read]],
  ["tools/call", { name: "acme_task_result", arguments: null }, [read]],
  ["tools/call", { name: "acme_task_result", arguments: { cancel: true } }, [call]],
  ["tools/call", { name: "acme_task_result", arguments: { job_id: "x" }, inputResponses: { q: {} } }, [call]],
  ["tools/call", { name: "acme_task_cancel" }, [call]],
  ["tools/call", { name: "task_status" }, [call]],
  ["tasks/cancel", {}, [call]],
  ["tasks/update", {}, [call]],
  ["tasks/get", {}, [read]],
  ["no/such/method", {}, [call]],
  [undefined, {}, [call]],
])("%s %j needs %j", (method, params, scopes) => {
  expect(needOf(method, params)).toEqual(scopes);
});

test("an alias needs what its command needs, and what a rule for a tool of that name says", () => {
  expect(needOf("tools/call", { name: "scribble" }, [{ tools: "scribble", scopes: ["hands"] }])).toEqual([
    ...[call, "write", "hands"],
  ]);
});

test("meanwhile:admin stands for the scopes that it includes", () => {
  expect(needOf("tools/call", { name: "note_write" }, [{ tools: "*", scopes: ["meanwhile:admin"] }])).toEqual([
    ...["write", "meanwhile:admin"],
  ]);
});

test("the local user needs nothing, and nothing is loaded for the decision", () => {
  expect(openGate().authorize({ caller: localUser }, "tools/call", { name: "note_write" })).toBeUndefined();
});

test("an error names at most 500 characters of the caller's scopes", () => {
  const scopes = Array.from({ length: 1_000 }, (_, at) => `scope-${at}`);
  const authorize = () => openGate().authorize({ caller: keyCaller("k1", { scopes }) }, "tools/list", {});
  expect(authorize).toThrow(/^tools\/list needs the scope meanwhile:read; the caller has scope-0, .{1,600}$/);
});
