import type { JsonObject } from "../../command/foreign.ts";
import type { ExitCode } from "../../errors.ts";
import type { Terminal } from "../terminal.ts";
import { formatData, type OutputFormat } from "./output.ts";

/** Why there is no result, for a program. */
export interface ErrorFacts {
  /** The sentence that a person gets on stderr. */
  readonly message: string;
  readonly exitCode: ExitCode;
  /** Which condition of the operator's, such as STORE_UNAVAILABLE. */
  readonly code?: string | undefined;
  /** The line of the author's code that threw it: `commands/report/build.ts:12:5`. */
  readonly at?: string | undefined;
  /** What the author added to the error. */
  readonly details?: unknown;
}

/**
 * Prints an error to stdout where the result would be, as `{ "error": { "message", "exitCode", … } }`. The fields of a
 * tool's own result stand beside `error`. Prints nothing in the format for a person.
 */
export async function printError(
  error: ErrorFacts,
  { terminal, format, result = {} }: { terminal: Terminal; format: OutputFormat; result?: JsonObject | undefined },
): Promise<void> {
  if (format !== "plain") terminal.print(await formatData({ data: { ...result, error } }, format));
}
