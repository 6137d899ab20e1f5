import type { DeferralConfig } from "../config.ts";
import { UsageError } from "../errors.ts";
import { type LogLevel, logLevels } from "../log.ts";
import type { ProcessEnvironment } from "../paths.ts";
import { thisProgram } from "../program/program.ts";
import { checkQueue } from "../queue/open-dispatcher.ts";
import { type DeferralRules, defaultDeferral } from "../task/deferral.ts";
import { isPort, isSeconds, maxSeconds } from "./check-config.ts";

/** When a call becomes a task: the environment over the config over the defaults. */
export function deferralFrom(env: ProcessEnvironment, config: DeferralConfig): DeferralRules {
  const toMs = (seconds: number | undefined) => (seconds === undefined ? undefined : seconds * 1000);
  return {
    isAuto: switchFrom(env, thisProgram.variable("AUTO_TASK")) ?? config.auto ?? defaultDeferral.isAuto,
    tools: toolsFrom(env[thisProgram.variable("AUTO_TASK_TOOLS")]) ?? config.tools ?? defaultDeferral.tools,
    requiresClientTasks:
      switchFrom(env, thisProgram.variable("AUTO_TASK_REQUIRE_CLIENT_CAP")) ??
      config.requireClientTasks ??
      defaultDeferral.requiresClientTasks,
    isUnsolicited:
      switchFrom(env, thisProgram.variable("AUTO_TASK_UNSOLICITED")) ??
      config.unsolicited ??
      defaultDeferral.isUnsolicited,
    patienceMs: toMs(config.patienceSeconds) ?? defaultDeferral.patienceMs,
    longFromMs: toMs(config.longSeconds) ?? defaultDeferral.longFromMs,
    keepInlineMs: toMs(config.keepInlineSeconds) ?? defaultDeferral.keepInlineMs,
    learns: config.learn ?? defaultDeferral.learns,
  };
}

function switchFrom(env: ProcessEnvironment, name: string): boolean | undefined {
  const value = env[name];
  if (value === undefined || value === "") return undefined;
  if (value !== "0" && value !== "1") throw new UsageError(`${name} must be 0 or 1, not "${value}".`);
  return value === "1";
}

/** A variable that holds seconds, as milliseconds; undefined where it is not set. */
export function secondsFrom(env: ProcessEnvironment, name: string): number | undefined {
  const value = env[name];
  if (value === undefined || value === "") return undefined;
  if (!isSeconds(Number(value)))
    throw new UsageError(`${name} must be seconds from 0 to ${maxSeconds}, not "${value}".`);
  return Number(value) * 1000;
}

function toolsFrom(value: string | undefined): string[] | undefined {
  const names = (value ?? "").split(",").flatMap((name) => name.trim() || []);
  if (names.some((name) => /\s/.test(name)))
    throw new UsageError(
      `${thisProgram.variable("AUTO_TASK_TOOLS")} must be tool names with commas between them, not "${value}".`,
    );
  return names.length === 0 ? undefined : names;
}

/** The queue that a variable names; undefined where it names none. */
export function queueFrom(env: ProcessEnvironment): string | undefined {
  const name = thisProgram.variable("QUEUE");
  return env[name] ? checkQueue(env[name], name) : undefined;
}

/** The port that a variable names; undefined where it names none. */
export function portFrom(value: string | undefined): number | undefined {
  if (value === undefined || value === "") return undefined;
  if (!isPort(Number(value)))
    throw new UsageError(`${thisProgram.variable("PORT")} must be a whole number from 0 to 65535, not "${value}".`);
  return Number(value);
}

/** The level that a variable names; undefined where it names none. */
export function levelFrom(value: string | undefined): LogLevel | undefined {
  if (value === undefined || value === "") return undefined;
  if (!logLevels.includes(value as LogLevel))
    throw new UsageError(`${thisProgram.variable("LOG")} must be one of ${logLevels.join(", ")}, not "${value}".`);
  return value as LogLevel;
}
