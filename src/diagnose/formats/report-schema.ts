import { z } from "zod";
import { callOutcomes } from "../asking/tool-calls.ts";
import { severities, suiteNames } from "../check.ts";
import type { Report } from "../report/report.ts";

/** What a report of version 1 looks like. docs/diagnose.schema.json is made of this; a test holds the two together. */

const suite = z.enum(suiteNames).meta({ id: "suite", description: "The suite a check belongs to." });
const severity = z.enum(severities).meta({ id: "severity", description: "How much a finding weighs, worst first." });

const timestamp = z
  .string()
  .refine((text) => !Number.isNaN(Date.parse(text)), "not a moment in time")
  .meta({ format: "date-time" });

const evidence = z
  .object({
    kind: z.enum(["sent", "received", "printed", "measured"]).describe("How it was seen."),
    text: z.string().describe("What was seen; secrets are blanked, control characters are gone."),
  })
  .meta({ id: "evidence", description: "What was seen." });

const target = z
  .object({
    transport: z.enum(["http", "stdio"]).describe("How the server was reached."),
    name: z.string().describe("The URL without its query, or the command line; secrets are blanked."),
    server: z
      .exactOptional(z.object({ name: z.string(), version: z.string() }))
      .describe("What the server calls itself."),
    revisions: z.array(z.string()).describe("The revisions of MCP it was seen to speak, newest first."),
    tasks: z.array(z.string()).describe("The generations of tasks it declares."),
    tools: z.int().min(0).describe("How many tools it lists."),
  })
  .meta({ id: "target", description: "The server that was looked at." });

const check = z
  .object({
    id: z.string().describe("The suite and the question; stays the same from version to version."),
    suite,
    question: z.string().describe("What was asked."),
    severity: severity.describe("What a “no” weighs."),
    outcome: z
      .enum(["passed", "failed", "skipped", "unfinished"])
      .describe("How it ended. A skipped or unfinished check says nothing about the server."),
    note: z.exactOptional(z.string()).describe("What was seen, why it was skipped, or what ended it early."),
    durationMs: z.number().min(0).describe("How long it took, in milliseconds."),
    evidence: z.exactOptional(z.array(evidence)).describe("What was seen where nothing was wrong."),
    data: z
      .exactOptional(z.record(z.string(), z.unknown()))
      .describe(
        "Figures by name. `matrix` is a table of hosts (rows) and tools (columns) whose cells say whether a call survives.",
      ),
  })
  .meta({ id: "check", description: "One question and how it ended." });

const finding = z
  .object({
    id: z.string().describe("The check's id, with a subject where there are several. Reports are compared by it."),
    check: z.string().describe("The id of the check that found it."),
    suite,
    severity,
    subject: z.exactOptional(z.string()).describe("What it is about: a tool, a host."),
    title: z.string().describe("What the server does, in one sentence."),
    why: z.string().describe("What goes wrong for a user."),
    remedy: z.string().describe("What to change."),
    source: z.string().describe("Where the rule comes from."),
    evidence: z.array(evidence).describe("What was seen."),
    isUntested: z
      .exactOptional(z.boolean())
      .describe(
        "True: the tool in `subject` says that it is slow, and no call of it was made. Then there is no grade.",
      ),
  })
  .meta({ id: "finding", description: "One thing that is wrong." });

const call = z
  .object({
    tool: z.string().describe("Its name."),
    isNamed: z.boolean().describe("True: the user named it."),
    outcome: z
      .enum(callOutcomes)
      .describe(
        "The best that became of its calls; `task`: a task whose end nobody saw; `unanswered`: nobody waited for its end.",
      ),
    note: z.exactOptional(z.string()).describe("What a failed call was answered with, or why there was none."),
  })
  .meta({ id: "call", description: "A tool that was called, and what became of it." });

const skipped = z
  .object({
    why: z.string().describe("The reason."),
    count: z.int().min(1),
    checks: z.array(z.string()).describe("The ids of the checks."),
  })
  .meta({ id: "skipped", description: "Checks that were not asked, all for the same reason." });

const score = z
  .object({
    points: z
      .int()
      .min(0)
      .max(100)
      .nullable()
      .describe("100 minus what was lost, never below 0; null where there is no grade."),
    grade: z
      .enum(["A", "B", "C", "D", "F"])
      .nullable()
      .describe(
        "A from 90, B from 75, C from 60, D from 40; with a blocker no better than C; null where no call of a tool succeeded, a slow tool was not tested, or the checks of a suite did not run.",
      ),
    lost: z
      .array(z.object({ check: z.string(), severity, points: z.int().min(0) }))
      .describe("What each check cost, worst first: blocker 30, major 10, minor 3."),
    explanation: z.string().describe("How the points came about, or why there are none, in one sentence."),
  })
  .meta({
    id: "score",
    description: "What the findings leave of 100 points; each check costs once, at its worst finding.",
  });

export const reportSchema = z
  .object({
    headline: z
      .exactOptional(z.string())
      .describe("Set where a call that the user named did not succeed, or a slow tool was not tested."),
    schema: z.string().describe("What kind of document this is."),
    version: z.literal(1).describe("Grows when a field changes its meaning."),
    madeBy: z.object({ name: z.literal("meanwhile"), version: z.string() }).describe("Which Meanwhile made it."),
    target,
    startedAt: timestamp.describe("When the diagnosis began."),
    durationMs: z.number().min(0).describe("How long it took, in milliseconds."),
    suites: z.array(suite).describe("The suites that were asked for."),
    isFull: z.boolean().describe("True: with --full, thorough checks included."),
    checks: z.array(check).describe("Every check, in the order of the suites."),
    findings: z.array(finding).describe("Everything that is wrong, worst first."),
    score,
    calls: z.exactOptional(z.array(call)).describe("The tools that were called, those that the user named first."),
    skipped: z.exactOptional(z.array(skipped)).describe("What was not asked, by the reason, most first."),
    incomplete: z
      .exactOptional(z.string())
      .describe("Set where the diagnosis ended early: what that means for the report."),
  })
  .meta({
    title: "A report of meanwhile diagnose",
    description: "What `meanwhile diagnose --format json` writes.",
  }) satisfies z.ZodType<Report>;
