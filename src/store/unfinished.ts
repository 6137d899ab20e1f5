import { RuntimeError } from "../errors.ts";
import { thisProgram } from "../program/program.ts";

/** A table that is there as long as somebody copies tasks into a store, and names whose run and from where. */
export const copyingTable = "copying";

/** Nobody uses a store before all that is to be in it is there. */
export function unfinishedCopy(place: string): RuntimeError {
  return new RuntimeError(
    "STORE_UNAVAILABLE",
    `${place} holds a copy that is not finished: run the same \`${thisProgram.name} store copy\` again, which goes on with it, or point ${thisProgram.variable("STORE")} elsewhere.`,
    {
      forClients:
        "Tasks are being copied into the task database; call again when whoever runs the server has finished.",
    },
  );
}
