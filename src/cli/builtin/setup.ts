import type { ExitCode } from "../../errors.ts";
import type { VerbCall } from "../main.ts";

export async function run(_call: VerbCall): Promise<ExitCode> {
  throw new Error("not built");
}
