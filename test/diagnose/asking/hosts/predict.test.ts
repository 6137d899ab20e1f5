import { describe, expect, test } from "vitest";
import type { SurveyedTool } from "../../../../src/diagnose/asking/facts.ts";
import { hostsKnown } from "../../../../src/diagnose/asking/hosts/host-settings.ts";
import type { Observation } from "../../../../src/diagnose/asking/hosts/observe.ts";
import { predict } from "../../../../src/diagnose/asking/hosts/predict.ts";

describe("a prediction", () => {
  const tool: SurveyedTool = {
    name: "print",
    description: "",
    inputSchema: {},
    annotations: {},
    taskSupport: undefined,
    json: { name: "print" },
  };
  const silent: Observation = {
    isNamed: false,
    elapsedMs: 12_000,
    isFinished: false,
    isFailed: false,
    progress: 0,
    silenceMs: 12_000,
    givesTask: false,
  };
  const of = (title: string, sight: Parameters<typeof predict>[1], server: Parameters<typeof predict>[2] = legacy) => {
    const host = hostsKnown.find(({ profile }) => profile.title === title);
    if (host === undefined) throw new Error(`There is no host ${title}.`);
    return predict(host, sight, server);
  };
  const legacy = { transport: "stdio", modern: undefined } as const;

  test("of a silent tool is a cut wherever the clock runs, at the limit of its transport", () => {
    expect(of("Claude Code", { tool, seen: silent })).toMatchObject({
      state: "cut",
      survivesSeconds: 1800,
      text: "cut after 1800 s of silence: it sends no progress",
    });
    expect(of("Claude Code", { tool, seen: silent }, { ...legacy, transport: "http" })).toMatchObject({
      state: "cut",
      survivesSeconds: 300,
    });
    expect(of("VS Code Copilot Chat", { tool, seen: silent })).toMatchObject({ state: "ok", text: "waits" });
  });

  test("of a tool behind Meanwhile is that every host gets an answer in time", () => {
    expect(of("Claude Code", { tool: { ...tool, isBehindMeanwhile: true }, seen: silent })).toMatchObject({
      state: "ok",
      text: "gets a result or a handle in time (Meanwhile)",
    });
  });

  test("of a tool with rare progress is a cut where silence is not borne that long", () => {
    const rare = { ...silent, progress: 2, silenceMs: 90_000 };
    expect(of("opencode", { tool, seen: rare })).toMatchObject({
      state: "cut",
      text: "cut after 60 s of silence: it sends progress too rarely",
    });
    expect(of("Copilot CLI", { tool, seen: rare })).toMatchObject({ state: "progress" });
  });

  test("of a call that failed is unknown: it says nothing about how long the tool takes", () => {
    expect(
      of("Codex CLI", { tool, seen: { ...silent, isFinished: true, isFailed: true, elapsedMs: 5 } }),
    ).toMatchObject({ state: "unknown" });
  });

  test("of a tool that wants a task is a cut wherever there are none", () => {
    const wanting = { ...tool, taskSupport: "required" };
    expect(of("Codex CLI", { tool: wanting, seen: undefined })).toMatchObject({ state: "cut", survivesSeconds: 0 });
    expect(of("VS Code Copilot Chat", { tool: wanting, seen: undefined })).toMatchObject({ state: "ok" });
  });

  test("of a tool that wants a task is none where the interactive Claude Code gets one, and a cut where the server has only the older tasks", () => {
    const wanting = { ...tool, taskSupport: "required" };
    const capabilities = { extensions: { "io.modelcontextprotocol/tasks": {} } };
    const modern = { ...legacy, modern: { revision: "2026-07-28", serverInfo: {}, capabilities, startMs: 1 } };
    const refused = { ...silent, isFinished: true, isFailed: true };
    const asTask = { state: "ok", text: "runs as a task in its interactive mode; with -p it cannot call it" };
    expect(of("Claude Code", { tool: wanting, seen: undefined }, modern)).toMatchObject(asTask);
    expect(of("Claude Code", { tool: wanting, seen: { ...refused, givesTask: true } }, modern)).toMatchObject(asTask);
    expect(of("Claude Code", { tool: wanting, seen: refused }, modern)).toMatchObject({ state: "cut" });
    expect(of("Claude Code", { tool: wanting, seen: undefined })).toMatchObject({ state: "cut", survivesSeconds: 0 });
    expect(of("Codex CLI", { tool: wanting, seen: undefined }, modern)).toMatchObject({
      state: "cut",
      survivesSeconds: 0,
    });
  });

  test("of a tool of Meanwhile's is no cut anywhere", () => {
    const ours = { ...tool, json: { name: "print", _meta: { "meanwhile/tool": { async: true } } } };
    expect(hostsKnown.map((host) => predict(host, { tool: ours, seen: silent }, legacy).state)).toEqual(
      hostsKnown.map(() => "ok"),
    );
  });
});
