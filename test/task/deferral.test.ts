import { describe, expect, test } from "vitest";
import { findHost } from "../../src/host/profiles.ts";
import {
  type Decision,
  type DeferralFacts,
  type DeferralRules,
  decide,
  defaultDeferral,
  isLong,
} from "../../src/task/deferral.ts";

const hostNamed = (name: string) => ({ ...findHost(name, {}).limits.stdio, host: name });
const codex = hostNamed("codex-mcp-client");
const opencode = hostNamed("opencode");

/** A quick command called by a client of Codex's kind: no tasks, a progress token, 300 s. */
const plain: DeferralFacts = {
  toolName: "report_build",
  declaredLong: false,
  taskSupport: "optional",
  historyP95Ms: undefined,
  estimateMs: undefined,
  isEndless: false,
  isAsked: false,
  canTakeTask: false,
  canTakeUnasked: false,
  declaresTasks: false,
  takesJobs: false,
  canFollowUp: true,
  limit: codex,
  hasProgressToken: true,
};
const long = { declaredLong: true } as const;
const call = (facts: Partial<DeferralFacts>, rules: Partial<DeferralRules> = {}): Decision =>
  decide({ ...plain, ...facts }, { ...defaultDeferral, ...rules });
const inline = (deferAs: "task" | "handle" | undefined, deferAfterMs: number | undefined, heartbeatMs?: number) => ({
  kind: "inline",
  deferAs,
  deferAfterMs,
  heartbeatMs,
});

describe("1. what the client asked for", () => {
  test("a task it asked for is made, whatever the command, the host and the settings say", () => {
    const asked: Decision = { kind: "now", as: "task", reason: "the client asked for a task" };
    expect(call({ isAsked: true })).toEqual(asked);
    expect(call({ isAsked: true, takesJobs: true, ...long })).toEqual(asked);
    expect(call({ isAsked: true }, { isAuto: false, requiresClientTasks: true })).toEqual(asked);
  });

  test("a client that takes job notifications gets a job of a long command, and an answer of any other", () => {
    const job: Decision = {
      kind: "now",
      as: "job",
      reason: "report_build is declared long and the client takes job notifications",
    };
    expect(call({ takesJobs: true, ...long })).toEqual(job);
    expect(call({ takesJobs: true, ...long, canTakeTask: true })).toEqual(job);
    expect(call({ takesJobs: true, ...long }, { isAuto: false })).toEqual(job);
    expect(call({ takesJobs: true })).toMatchObject(inline("handle", 285_000));
  });
});

describe("2. a task at once", () => {
  test("for a long command, where the client takes tasks", () => {
    expect(call({ canTakeTask: true, ...long })).toEqual({
      kind: "now",
      as: "task",
      reason: "report_build is declared long and the client takes tasks",
    });
  });

  test("for a command that is long by its history", () => {
    expect(call({ canTakeTask: true, historyP95Ms: 42_000 })).toEqual({
      kind: "now",
      as: "task",
      reason: "report_build is long (history: p95 42 s) and the client takes tasks",
    });
  });

  test("for a command that only runs as one", () => {
    expect(call({ canTakeTask: true, taskSupport: "required" })).toEqual({
      kind: "now",
      as: "task",
      reason: "report_build always runs as a task",
    });
    expect(call({ canTakeTask: false, taskSupport: "required" })).toMatchObject(inline("handle", 285_000));
  });

  test("unasked only where that is switched on, and for long commands only", () => {
    expect(call({ canTakeUnasked: true, ...long })).toMatchObject(inline("handle", 285_000));
    expect(call({ canTakeUnasked: true, ...long }, { isUnsolicited: true })).toEqual({
      kind: "now",
      as: "task",
      reason: "report_build is declared long and tasks are given unasked",
    });
    expect(call({ canTakeUnasked: true }, { isUnsolicited: true })).toMatchObject(inline("handle", 285_000));
    expect(call({ canTakeUnasked: false, ...long }, { isUnsolicited: true })).toMatchObject(inline("handle", 285_000));
  });
});

describe("3. late", () => {
  test("a client that takes tasks waits for a short patience", () => {
    expect(call({ canTakeTask: true })).toEqual({ ...inline("task", 10_000), reason: "no answer after 10 s" });
    expect(call({ canTakeTask: true, limit: opencode })).toEqual({
      ...inline("task", 10_000, 20_000),
      reason: "no answer after 10 s",
    });
  });

  test("but never longer than its host", () => {
    const hasty = { limitMs: 8_000, isExtended: false, host: "hasty" };
    expect(call({ canTakeTask: true, limit: hasty })).toEqual({
      ...inline("task", 6_000),
      reason: "hasty cuts calls after 8 s",
    });
  });

  test("any other client gets a plain handle just before its host cuts the call", () => {
    expect(call({})).toEqual({ ...inline("handle", 285_000), reason: "codex-mcp-client cuts calls after 300 s" });
    expect(call({ limit: hostNamed("nobody") })).toMatchObject(inline("handle", 22_500));
  });

  test("or after ten minutes, with heartbeats, where progress makes the host wait", () => {
    expect(call({ limit: opencode })).toEqual({
      ...inline("handle", 600_000, 20_000),
      reason: "calls are kept open for 600 s at most",
    });
    expect(call({ limit: opencode, hasProgressToken: false })).toMatchObject(inline("handle", 45_000, undefined));
    expect(call({ limit: hostNamed("Visual Studio Code") })).toMatchObject(inline("handle", 600_000, undefined));
  });

  test("a long command that is expected to outlast the host gets its handle at once", () => {
    expect(call({ ...long, estimateMs: 400_000 })).toEqual({
      kind: "now",
      as: "handle",
      reason: "report_build is declared long and needs about 400 s; codex-mcp-client cuts calls after 300 s",
    });
    expect(call({ ...long, estimateMs: 285_001 })).toMatchObject({ kind: "now", as: "handle" });
    expect(call({ ...long, estimateMs: 285_000 })).toMatchObject(inline("handle", 285_000));
    expect(call({ ...long, estimateMs: undefined })).toMatchObject(inline("handle", 285_000));
    expect(call({ estimateMs: 400_000 })).toMatchObject(inline("handle", 285_000));
  });
});

describe("nothing is deferred", () => {
  test("where the command is never a task; heartbeats go on", () => {
    const never = { ...inline(undefined, undefined, 20_000), reason: "report_build is never run as a task" };
    expect(call({ taskSupport: "forbidden", limit: opencode, canTakeTask: true, takesJobs: true, ...long })).toEqual(
      never,
    );
  });

  test("where no client could ask for the result", () => {
    const off = "the client takes no tasks, and the follow-up tools are off";
    expect(call({ canFollowUp: false, limit: opencode, ...long, estimateMs: 900_000 })).toEqual({
      ...inline(undefined, undefined, 20_000),
      reason: off,
    });
    expect(call({ canFollowUp: false, canTakeTask: true })).toMatchObject(inline("task", 10_000));
  });
});

describe("settings", () => {
  test("the defaults, with nothing set", () => {
    expect(defaultDeferral).toEqual({
      isAuto: true,
      tools: undefined,
      requiresClientTasks: false,
      isUnsolicited: false,
      learns: true,
      patienceMs: 10_000,
      longFromMs: 10_000,
      keepInlineMs: 600_000,
    });
    for (const facts of [plain, { ...plain, ...long, canTakeTask: true }])
      expect(decide(facts)).toEqual(decide(facts, defaultDeferral));
  });

  test("isAuto off: only what the client asked for", () => {
    const off = { isAuto: false };
    const stays = { ...inline(undefined, undefined), reason: "only tasks that the client asks for are made" };
    expect(call({}, off)).toEqual(stays);
    expect(call({ canTakeTask: true, ...long }, off)).toEqual(stays);
    expect(call({ canTakeTask: true, taskSupport: "required" }, off)).toMatchObject({ kind: "now", as: "task" });
    expect(call({ canTakeUnasked: true, ...long }, { ...off, isUnsolicited: true })).toEqual(stays);
    expect(call({ limit: opencode }, off)).toMatchObject(inline(undefined, undefined, 20_000));
    expect(call({ limit: opencode, hasProgressToken: false }, off)).toMatchObject(
      inline(undefined, undefined, undefined),
    );
  });

  test("requiresClientTasks: clients without tasks wait for the answer", () => {
    const required = { requiresClientTasks: true };
    const reason = "the client declares no tasks, and nothing else is to be given";
    expect(call({ ...long, estimateMs: 900_000, limit: opencode }, required)).toEqual({
      ...inline(undefined, undefined, 20_000),
      reason,
    });
    expect(call({ canTakeTask: true }, required)).toMatchObject(inline("task", 10_000));
    expect(call({ canTakeTask: true, ...long }, required)).toMatchObject({ kind: "now", as: "task" });
  });

  test("tools replaces what is declared; history adds", () => {
    const why = (facts: Partial<DeferralFacts>, rules: Partial<DeferralRules>) =>
      isLong({ ...plain, ...facts }, { ...defaultDeferral, ...rules })?.why;
    expect(why(long, {})).toBe("declared long");
    expect(why({}, {})).toBeUndefined();
    expect(why(long, { tools: ["other"] })).toBeUndefined();
    expect(why(long, { tools: [] })).toBeUndefined();
    expect(why({}, { tools: ["other", "report_build"] })).toBe("listed in MEANWHILE_AUTO_TASK_TOOLS");
    expect(why(long, { tools: ["report_build"] })).toBe("listed in MEANWHILE_AUTO_TASK_TOOLS");
    expect(why({ historyP95Ms: 42_000 }, { tools: [] })).toBe("history: p95 42 s");
    expect(call({ canTakeTask: true }, { tools: ["report_build"] })).toMatchObject({
      reason: "report_build is listed in MEANWHILE_AUTO_TASK_TOOLS and the client takes tasks",
    });
  });

  test("longFromMs: from which p95 on a command is long", () => {
    const why = (historyP95Ms: number, longFromMs: number) =>
      isLong({ ...plain, historyP95Ms }, { tools: undefined, longFromMs })?.why;
    expect([why(10_000, 10_000), why(10_001, 10_000)]).toEqual([undefined, "history: p95 10 s"]);
    expect([why(2_000, 2_000), why(2_100, 2_000)]).toEqual([undefined, "history: p95 2.1 s"]);
  });

  test("patienceMs: how long a client that takes tasks waits", () => {
    expect(call({ canTakeTask: true }, { patienceMs: 2_500 })).toEqual({
      ...inline("task", 2_500),
      reason: "no answer after 2.5 s",
    });
    expect(call({ canTakeTask: true }, { patienceMs: 0 })).toMatchObject(inline("task", 0));
    expect(call({ canTakeTask: true }, { patienceMs: 400_000 })).toMatchObject(inline("task", 285_000));
  });

  test("keepInlineMs: how long any call stays open", () => {
    expect(call({}, { keepInlineMs: 30_000 })).toEqual({
      ...inline("handle", 30_000),
      reason: "calls are kept open for 30 s at most",
    });
    expect(call({ limit: opencode }, { keepInlineMs: 30_000 })).toMatchObject(inline("handle", 30_000, 20_000));
    expect(call({ ...long, estimateMs: 31_000 }, { keepInlineMs: 30_000 })).toEqual({
      kind: "now",
      as: "handle",
      reason: "report_build is declared long and needs about 31 s; calls are kept open for 30 s at most",
    });
  });
});

test("a command that does not end by itself is deferred at once, whatever the client can take", () => {
  const watch = { ...plain, isEndless: true };
  expect(decide({ ...watch, canTakeTask: true })).toMatchObject({
    kind: "now",
    as: "task",
    reason: "report_build does not end by itself and the client takes tasks",
  });
  expect(decide({ ...watch, takesJobs: true })).toMatchObject({ kind: "now", as: "job" });
  expect(decide(watch)).toMatchObject({ kind: "now", as: "handle", reason: "report_build does not end by itself" });
  expect(
    decide({ ...watch, limit: { ...plain.limit, limitMs: undefined } }),
    "also where the host would wait",
  ).toMatchObject({ kind: "now", as: "handle" });
});

test("a task that nobody asked for is given to a client without tasks only where none are required", () => {
  const unasked = { ...plain, ...long, canTakeUnasked: true };
  const rules = { ...defaultDeferral, isUnsolicited: true };
  expect(decide(unasked, rules)).toMatchObject({ kind: "now", as: "task" });
  expect(decide(unasked, { ...rules, requiresClientTasks: true })).toMatchObject({
    kind: "inline",
    deferAs: undefined,
  });
  expect(decide({ ...unasked, declaresTasks: true }, { ...rules, requiresClientTasks: true })).toMatchObject({
    kind: "now",
    as: "task",
  });
});
