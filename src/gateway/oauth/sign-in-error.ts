import { CommandError } from "../../errors.ts";
import { clean } from "../../screen/clean.ts";
import { cut } from "../../wire/peer-errors.ts";

/** Signing in to an upstream did not work; the sentence names the upstream, and holds no secret. */
export class SignInError extends CommandError {
  override readonly name = "SignInError";
  /** What the authorization server calls it, e.g. `invalid_grant`. */
  readonly code: string | undefined;
  /** True when trying again later may end otherwise. */
  readonly isPassing: boolean;

  constructor(message: string, facts: { code?: string | undefined; isPassing?: boolean; cause?: unknown } = {}) {
    super(message, { cause: facts.cause });
    this.code = facts.code;
    this.isPassing = facts.isPassing ?? false;
  }
}

/** Somebody else's words for a sentence of ours: nothing a screen obeys, and none of the secrets they may repeat. */
export function quoteWords(said: string, secrets: readonly string[] = []): string {
  let text = said.slice(0, 2_000);
  for (const secret of secrets) if (secret !== "") text = text.replaceAll(secret, "…");
  return cut(clean(text), 200);
}
