import type { LiveTask, Task } from "../../task/task.ts";
import { fromTask } from "./rows.ts";
import type { TaskFile } from "./task-file.ts";

/** A new task, written out ahead of the transaction that puts it on record. */
export function prepareTask(file: TaskFile, task: LiveTask): { insert(): Task } {
  const values = fromTask(task);
  const { input } = values;
  const environment = values.environment === null ? undefined : task.environment;
  return {
    // What it was asked with lies apart from it.
    insert() {
      const number = file.insert("insert", values);
      file.run("insertInput", { number, input });
      return { ...task, environment, input: JSON.parse(input) };
    },
  };
}
