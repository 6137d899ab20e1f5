import { CommandError } from "../errors.ts";

/**
 * Whose fault it is: the command's own completer (it threw, or answered with something else than a list of texts), its
 * time limit, the schema, the argument that was asked for, or a request or schema past what completion works through.
 */
export type CompletionFault = "completer" | "timeout" | "schema" | "argument" | "limit";

/** Nothing can be offered, and it is not because nothing fits. */
export class CompletionFailed extends CommandError {
  override readonly name = "CompletionFailed";
  readonly code = "completion_failed";
  readonly fault: CompletionFault;
  /** The argument whose value was to be completed; undefined when it was the arguments' names. */
  readonly argument: string | undefined;
  readonly reason: string;

  constructor(
    fault: CompletionFault,
    reason: string,
    options: { argument?: string | undefined; cause?: unknown } = {},
  ) {
    const { argument, cause } = options;
    const message = `Completing ${argument === undefined ? "failed" : `\`${argument}\` failed`}: ${reason}`;
    super(message, { details: { code: "completion_failed", fault, argument, reason }, cause });
    this.fault = fault;
    this.argument = argument;
    this.reason = reason;
  }
}
