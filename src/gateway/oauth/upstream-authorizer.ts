import { type Clock, systemClock } from "../../clock.ts";
import { RuntimeError } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import { ConnectionError } from "../../wire/peer-errors.ts";
import type { Authorizer } from "../upstream-link.ts";
import { findSignIn } from "./discover-sign-in.ts";
import { type KeptSignIn, SignInMemory, type UpstreamSignIn } from "./kept-sign-in.ts";
import { openReach } from "./oauth-reach.ts";
import { chooseScopes, signInAsClient, toSafeUrl } from "./sign-in.ts";
import { SignInError } from "./sign-in-error.ts";
import { type GivenTokens, requestTokens } from "./token-request.ts";
import { type BearerChallenge, parseChallenge } from "./upstream-challenge.ts";

export interface AuthorizerOptions extends UpstreamSignIn {
  /** What a person types behind the program's name to sign in to this upstream. */
  readonly login: string;
}

/**
 * Tokens for one upstream, from the home: whoever signs in there, or gets a new token in another process, is heard at
 * the next request. It opens no browser and asks nobody: it stands in a daemon.
 */
export function createAuthorizer(options: AuthorizerOptions): Authorizer {
  return new UpstreamAuthorizer(options);
}

/** A token that ends sooner than this is exchanged before it is used. */
const marginMs = 60_000;
/** A token that is refused so soon was never any good, and the next one would not be. */
const freshMs = 10_000;

class UpstreamAuthorizer implements Authorizer {
  readonly #options: AuthorizerOptions;
  readonly #clock: Clock;
  readonly #memory: SignInMemory;
  /** The one exchange at a time that all requests wait for. */
  #renewing: Promise<GivenTokens | undefined> | undefined;

  constructor(options: AuthorizerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#memory = new SignInMemory(options);
  }

  async header(): Promise<string | undefined> {
    return await this.#saying(async () => {
      const kept = this.#memory.read();
      if (kept?.tokens === undefined) return undefined;
      toSafeUrl(this.#options);
      const tokens = this.#isNearEnd(kept.tokens) ? await this.#exchange(kept.tokens) : kept.tokens;
      return tokens === undefined ? undefined : toHeader(tokens);
    });
  }

  async refused(header: string | undefined, sent: string | undefined): Promise<boolean> {
    return await this.#saying(async () => {
      toSafeUrl(this.#options);
      const kept = this.#memory.read();
      if (kept?.tokens !== undefined && toHeader(kept.tokens) !== sent) return true;
      const challenge = parseChallenge(header);
      if (challenge.error === "insufficient_scope" && kept?.tokens !== undefined)
        return await this.#widen(kept, challenge);
      if (kept?.tokens !== undefined) {
        if (this.#clock.now() - kept.tokens.obtainedAt < freshMs) throw this.#refusesFresh();
        if ((await this.#renew(kept.tokens)) !== undefined) return true;
      }
      if (!this.#isAlone) throw this.#wantsPerson("wants you to sign in");
      await this.#beginAlone(challenge, kept);
      return true;
    });
  }

  get #isAlone(): boolean {
    return this.#options.oauth?.grant === "client-credentials";
  }

  #isNearEnd({ obtainedAt, expiresAt = Number.POSITIVE_INFINITY }: GivenTokens): boolean {
    // Of one that lives shortly, its last tenth.
    const margin = Math.min(marginMs, (expiresAt - obtainedAt) / 10);
    return this.#clock.now() >= expiresAt - margin;
  }

  /** New tokens for ones that end; these, while they last, when the authorization server is not there. */
  async #exchange(ending: GivenTokens): Promise<GivenTokens | undefined> {
    const isOver = () => this.#clock.now() >= (ending.expiresAt ?? Number.POSITIVE_INFINITY);
    try {
      return (await this.#renew(ending)) ?? (isOver() ? undefined : ending);
    } catch (error) {
      if (!(error instanceof SignInError) || isOver()) throw error;
      return ending;
    }
  }

  /** Other tokens than these; undefined where a sign-in is needed for them. */
  async #renew(old: GivenTokens): Promise<GivenTokens | undefined> {
    this.#renewing ??= this.#memory
      .alone(this.#clock, async () => await this.#renewAlone(old))
      .finally(() => {
        this.#renewing = undefined;
      });
    return await this.#renewing;
  }

  async #renewAlone(old: GivenTokens): Promise<GivenTokens | undefined> {
    const kept = this.#memory.read();
    if (kept?.tokens === undefined) return undefined;
    // Another process was first: its refresh token is the one that counts.
    if (kept.tokens.accessToken !== old.accessToken) return kept.tokens;
    const { refreshToken } = kept.tokens;
    if (refreshToken === undefined && !this.#isAlone) return undefined;
    const scope = kept.scopes.length === 0 ? {} : { scope: kept.scopes.join(" ") };
    const form =
      refreshToken === undefined
        ? { grant_type: "client_credentials", ...scope }
        : { grant_type: "refresh_token", refresh_token: refreshToken };
    try {
      const given = await this.#request(kept, form);
      const tokens = { ...given, refreshToken: given.refreshToken ?? refreshToken };
      this.#memory.write({ ...kept, tokens });
      return tokens;
    } catch (error) {
      // Taken back, used twice, or too old: it is never asked with again.
      if (!(error instanceof SignInError) || error.isPassing || error.code === undefined) throw error;
      this.#memory.write({ ...kept, tokens: undefined });
      return undefined;
    }
  }

  /** Asks where these tokens came from, whatever the upstream says by now. */
  async #request(kept: KeptSignIn, form: Readonly<Record<string, string>>): Promise<GivenTokens> {
    const reach = await openReach(this.#options.name, new URL(this.#options.url));
    const endpoint = reach.parse(kept.tokenEndpoint, "its token_endpoint");
    const said = { ...form, resource: kept.resource };
    return await requestTokens({ endpoint, reach, client: kept.client, form: said, clock: this.#clock });
  }

  /** Asks for the scopes that were missing: once, because a token that has them all and is refused stays refused. */
  async #widen(kept: KeptSignIn, challenge: BearerChallenge): Promise<boolean> {
    const { name } = this.#options;
    const wanted = [...new Set([...kept.scopes, ...(challenge.scopes ?? [])])];
    if (wanted.length === kept.scopes.length)
      throw new SignInError(`${name} refuses this to whoever has signed in; all that it asks for was given.`);
    if (this.#isAlone) {
      await this.#beginAlone(challenge, { ...kept, wanted });
      return true;
    }
    await this.#memory.alone(this.#clock, async () => {
      const now = this.#memory.read();
      if (now !== undefined) this.#memory.write({ ...now, wanted });
    });
    throw this.#wantsPerson("wants you to sign in again, because this needs more than it has let you do");
  }

  /** Signs in without a person, where the upstream says; never with a secret that another server knows us by. */
  async #beginAlone(challenge: BearerChallenge, kept: KeptSignIn | undefined): Promise<void> {
    const { name } = this.#options;
    const url = toSafeUrl(this.#options);
    const reach = await openReach(name, url);
    const place = await findSignIn({ url, reach, challenge, isAsked: true, lastIssuer: kept?.issuer });
    if (kept !== undefined && kept.issuer !== place.issuer)
      throw this.#wantsPerson("names another authorization server than before; if that is right, sign in again");
    const scopes = chooseScopes(this.#options, place, kept);
    await this.#memory.alone(this.#clock, async () => {
      const now = this.#memory.read();
      if (now?.tokens !== undefined && now.tokens.accessToken !== kept?.tokens?.accessToken) return;
      const signal = AbortSignal.timeout(60_000);
      const clock = this.#clock;
      this.#memory.write(await signInAsClient({ upstream: this.#options, place, reach, scopes, clock, signal }));
    });
  }

  #refusesFresh(): SignInError {
    const { name } = this.#options;
    return new SignInError(`${name} refuses the token that its authorization server has just given for it.`);
  }

  #wantsPerson(what: string): SignInError {
    const { name, login } = this.#options;
    const typed = thisProgram.typed(login);
    return new SignInError(
      `${name} ${what}${typed === undefined ? ", and nobody can do that here" : `: run \`${typed}\`, then try again`}.`,
    );
  }

  /** Whatever goes wrong here, the request was not carried out. */
  async #saying<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (cause) {
      const facts = { isUnsent: true, cause };
      if (cause instanceof SignInError)
        throw new ConnectionError(cause.message, { ...facts, isPassing: cause.isPassing });
      // Its sentence names a path of this machine's, and may be read by anybody.
      if (cause instanceof RuntimeError || (cause instanceof Error && "code" in cause))
        throw new ConnectionError(
          `The tokens for ${this.#options.name} are not used, because of who may read them or because they cannot be kept; \`${thisProgram.name} ${this.#options.login}\` says more.`,
          { ...facts, isPassing: false },
        );
      throw cause;
    }
  }
}

const toHeader = ({ accessToken }: GivenTokens) => `Bearer ${accessToken}`;
