import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { temporaryFolder } from "./home.ts";
import { waitFor } from "./wait-for.ts";
import type { Result } from "./wire.ts";

/** A run's traces, and the gate that it waits at. */
export function gate() {
  const file = path.join(temporaryFolder(), "traces");
  const lines = () => (existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : []);
  return {
    input: { file },
    lines,
    starts: () => lines().filter((line) => line === "started").length,
    open: () => writeFileSync(`${file}.go`, ""),
    /** Resolves when a line has been written so many times. */
    seen: async (line: string, count = 1) => {
      await waitFor(
        () => lines().filter((other) => other === line).length >= count,
        () => `expected ${count} × ${line} in [${lines().join(", ")}]`,
      );
    },
  };
}

/** What a call was answered with. */
export function kindOf(result: Result): "task of 2025" | "task of 2026" | "handle" | "job" | "error" | "answer" {
  if (result.task !== undefined) return "task of 2025";
  if (result.resultType === "task") return "task of 2026";
  const data = result.structuredContent?.data;
  if (data?.next_action !== undefined) return "handle";
  if (data?.job_id !== undefined) return "job";
  return result.isError === true ? "error" : "answer";
}

/** The task behind a call's answer. */
export function taskIdOf(result: Result): string {
  const id = result.task?.taskId ?? result.taskId ?? result.structuredContent?.data.job_id;
  if (typeof id !== "string") throw new Error(`No task is in ${JSON.stringify(result)}`);
  return id;
}
