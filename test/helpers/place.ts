import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { modernRevision } from "../../src/wire/revisions.ts";
import { temporaryFolder } from "./home.ts";
import { waitFor } from "./wait-for.ts";
import type { Fields, WireClient } from "./wire.ts";

/** What clients that write their messages by hand do with tasks. */

/** Starts a command as a task, in the way of the client's revision; the task's id, and all that the handle says. */
export async function startTask(
  client: WireClient,
  name: string,
  input: Fields = {},
  more: Fields = {},
): Promise<{ readonly taskId: string; readonly task: Fields }> {
  const asked = client.revision === modernRevision ? {} : { task: {} };
  const answer = await client.request("tools/call", { name, arguments: input, ...asked, ...more });
  const task = answer.result?.task ?? (answer.result?.resultType === "task" ? answer.result : undefined);
  if (typeof task?.taskId !== "string")
    throw new Error(`${name} gave no task: ${JSON.stringify(answer.result ?? answer.error)}`);
  return { taskId: task.taskId as string, task };
}

export const isEnded = ({ status }: Fields) => status === "completed" || status === "failed" || status === "cancelled";

/** Looks at a task until it is as wanted. */
export async function taskWhen(
  client: WireClient,
  taskId: string,
  isRight: (task: Fields) => boolean,
  guardMs?: number,
): Promise<Fields> {
  return await waitFor(
    async () => {
      const { result } = await client.request("tasks/get", { taskId });
      return result !== undefined && isRight(result) ? result : undefined;
    },
    undefined,
    guardMs,
  );
}

/** Resolves after some requests and answers: whatever the server does at once because of an earlier message is done. */
export async function roundTrips(client: WireClient): Promise<void> {
  for (let count = 0; count < 5; count++) await client.request("tasks/get", { taskId: "of nobody" });
}

/** A file that a command leaves its traces in, and the gate it waits at. */
export interface Traces {
  readonly file: string;
  readonly lines: () => string[];
  /** Resolves once such a line is there. */
  readonly shows: (start: string) => Promise<string>;
  /** Lets the command go on. */
  readonly release: () => void;
}

export function openTraces(): Traces {
  const file = path.join(temporaryFolder(), "traces.txt");
  const lines = () => (existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : []);
  return {
    file,
    lines,
    shows: (start) =>
      waitFor(
        () => lines().find((line) => line.startsWith(start)),
        () => `no trace of «${start}»: ${lines().join(" | ")}`,
      ),
    release: () => writeFileSync(`${file}.go`, ""),
  };
}
