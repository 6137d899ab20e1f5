import { toSeconds } from "../../../host/budget.ts";
import type { HostLimit } from "../../../host/profiles.ts";
import { isObject } from "../../../wire/json.ts";
import { legacyRevision, modernRevision } from "../../../wire/revisions.ts";
import type { Facts, SurveyedTool } from "../facts.ts";
import type { HostSettings } from "./host-settings.ts";
import { declaresTasks, isSlow, type Observation } from "./observe.ts";

/** What a host does with a call of a tool that takes very long, an hour say. */
export interface Prediction {
  /** The host's title. */
  readonly host: string;
  readonly tool: string;
  readonly state: "ok" | "progress" | "cut" | "unknown";
  readonly text: string;
  readonly kind: "hard" | "idle" | "waits" | "unknown";
  readonly limitSeconds: number | null;
  /** How long a call of this tool lives there; null where no end is known. */
  readonly survivesSeconds: number | null;
}

/** What is known of a tool. */
export interface Sight {
  readonly tool: SurveyedTool;
  /** Undefined: it was not called. */
  readonly seen: Observation | undefined;
}

type Foretold = Pick<Prediction, "state" | "text"> & { readonly survivesMs?: number | undefined };

/** What of the server a prediction depends on. */
type Server = Pick<Facts, "transport" | "modern">;

/** From the host's limits and from how the tool was seen to behave. */
export function predict(host: HostSettings, sight: Sight, server: Server): Prediction {
  const limit = host.profile.limits[server.transport];
  const { state, text, survivesMs } = foretellTask(host, sight, server) ?? foretell(host, sight, limit);
  return {
    host: host.profile.title,
    tool: sight.tool.name,
    state,
    text,
    kind: kindOf(limit),
    limitSeconds: limit.limitMs === undefined || limit.isAssumed === true ? null : limit.limitMs / 1000,
    survivesSeconds: survivesMs === undefined ? null : survivesMs / 1000,
  };
}

function kindOf({ limitMs, isExtended, isAssumed }: HostLimit): Prediction["kind"] {
  if (isAssumed === true) return "unknown";
  if (limitMs === undefined) return "waits";
  return isExtended ? "idle" : "hard";
}

/**
 * A tool that can only be called as a task; undefined: it can also be called without one, or this host takes its tasks.
 */
function foretellTask({ notes }: HostSettings, { tool, seen }: Sight, server: Server): Foretold | undefined {
  if (tool.taskSupport !== "required" || notes.tasks === legacyRevision) return undefined;
  // Over 2026-07-28 a server may hand out the same tool as a task, or answer it plainly: there the word says nothing.
  if (notes.tasks === modernRevision && declaresTasks(server)) {
    if (seen !== undefined && !seen.isFailed) return undefined;
    if (seen === undefined || seen.givesTask)
      return { state: "ok", text: "runs as a task in its interactive mode; with -p it cannot call it" };
  }
  return { state: "cut", text: "cannot call it: the tool wants a task, and this host has none", survivesMs: 0 };
}

function foretell(host: HostSettings, { tool, seen }: Sight, limit: HostLimit): Foretold {
  if (isKeptInTime(tool)) return { state: "ok", text: "gets a result or a handle in time (Meanwhile)" };
  if (limit.limitMs === undefined) return { state: "ok", text: "waits" };
  if (seen !== undefined && !seen.isFailed && !isSlow(seen))
    return {
      state: "ok",
      text: `answers quickly; ${describeLimit(limit, limit.limitMs)}`,
      survivesMs: endOf(host, limit, seen),
    };
  if (seen?.givesTask === true && host.notes.tasks === modernRevision)
    return {
      state: "ok",
      text: `runs as a task in its interactive mode; with -p ${describeLimit(limit, limit.limitMs)}`,
    };
  if (limit.isAssumed === true) return { state: "unknown", text: "this host was not measured; several cut at 30 s" };
  return seen === undefined || seen.isFailed ? unseen(limit, limit.limitMs) : judge(host, limit, limit.limitMs, seen);
}

/** A slow tool whose behaviour is known. */
function judge({ notes }: HostSettings, limit: HostLimit, limitMs: number, seen: Observation): Foretold {
  const at = toSeconds(limitMs);
  const isHeard = seen.progress > 0 && seen.silenceMs < limitMs;
  if (limit.isExtended && isHeard)
    return {
      state: "progress",
      text: `lives while progress comes at least every ${at} (it comes every ${every(seen.silenceMs)})`,
    };
  if (limit.isExtended)
    return {
      state: "cut",
      text: `cut after ${at} of silence: it sends ${seen.progress > 0 ? "progress too rarely" : "no progress"}`,
      survivesMs: limitMs,
    };
  if (notes.progress === "unknown" && isHeard)
    return { state: "unknown", text: `cut at ${at} unless progress extends it, which was not measured` };
  const why =
    notes.progress === "never-asked"
      ? " (it never asks for progress)"
      : notes.progress === "ignored" && isHeard
        ? " (progress does not help)"
        : "";
  return { state: "cut", text: `cut at ${at}${why}`, survivesMs: limitMs };
}

/** A tool that was not called: how it behaves is not known, what the host does is. */
function unseen(limit: HostLimit, limitMs: number): Foretold {
  const how = limit.isExtended
    ? `cut there if silent for ${toSeconds(limitMs)}`
    : `if slow ${describeLimit(limit, limitMs)}`;
  return { state: "unknown", text: `${how} (not called here)` };
}

function describeLimit({ isExtended, isAssumed }: HostLimit, limitMs: number): string {
  if (isAssumed === true) return "the limit there is not known";
  return isExtended ? `cut there after ${toSeconds(limitMs)} of silence` : `cut there at ${toSeconds(limitMs)}`;
}

function endOf({ notes }: HostSettings, { limitMs, isAssumed }: HostLimit, seen: Observation): number | undefined {
  if (isAssumed === true) return undefined;
  const isHeard = seen.progress > 0 && seen.silenceMs < (limitMs ?? 0);
  return isHeard && (notes.progress === "extends" || notes.progress === "unknown") ? undefined : limitMs;
}

/** Meanwhile's own tools are answered inside every host's time; they say so. */
export function isKeptInTime({ json, isBehindMeanwhile = false }: SurveyedTool): boolean {
  return isBehindMeanwhile || (isObject(json._meta) && isObject(json._meta["meanwhile/tool"]));
}

/** Whole seconds, so that it is the same from run to run. */
function every(ms: number): string {
  return ms < 1_000 ? "second or more often" : `${Math.round(ms / 1000)} s`;
}
