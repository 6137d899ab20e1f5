import { describe, expect, test, vi } from "vitest";
import { type Credentials, createAuthenticator } from "../../src/auth/authenticate.ts";
import { AuthenticationError, type TokenVerifier } from "../../src/auth/authentication.ts";
import { anonymous, keyCaller, localUserOf } from "../../src/command/caller.ts";

const localUser = localUserOf(() => "home");
const of = (authorization?: string, more: Partial<Credentials> = {}): Credentials => ({
  authorization,
  isRepeated: false,
  isInQuery: false,
  ...more,
});

function open({ allowAnonymous = false, verify = () => ({ caller: keyCaller("one") }) as never } = {}) {
  let token = "token-of-the-home";
  const verified: string[] = [];
  const verifier: TokenVerifier = {
    accepts: (text) => text.startsWith("mw_"),
    verify(text) {
      verified.push(text);
      return verify();
    },
  };
  const authenticate = createAuthenticator({
    homeToken: () => token,
    localUser,
    allowAnonymous,
    verifiers: [verifier],
  });
  const reset = (next: string) => {
    token = next;
  };
  return { authenticate, verified, reset };
}

const kindOf = async (ask: () => unknown) => {
  try {
    await ask();
    return "accepted";
  } catch (error) {
    return error instanceof AuthenticationError ? error.kind : error;
  }
};

test("the home's token is the local user's, for as long as it is the home's", async () => {
  const { authenticate, reset } = open();
  const { caller, isStillValid } = await authenticate(of("Bearer token-of-the-home"));
  expect(caller).toBe(localUser);
  expect(isStillValid?.()).toBe(true);
  reset("another");
  expect(isStillValid?.()).toBe(false);
  expect(await kindOf(() => authenticate(of("Bearer token-of-the-home")))).toBe("invalid");
});

describe.each([true, false])("with allowAnonymous: %s", (allowAnonymous) => {
  test.each<[string, Credentials]>([
    ["another token", of("Bearer token-of-another")],
    ["one character changed", of("Bearer token-of-the-homE")],
    ["an empty bearer", of("Bearer ")],
    ["another scheme", of("Basic dG9rZW4=")],
    ["two values", of("Bearer token-of-the-home x")],
    ["two headers", of("Bearer token-of-the-home", { isRepeated: true })],
    ["a token in the URL", of("Bearer token-of-the-home", { isInQuery: true })],
    ["a token in the URL alone", of(undefined, { isInQuery: true })],
  ])("%s is refused, and never a caller", async (_what, credentials) => {
    const { authenticate } = open({ allowAnonymous });
    expect(await kindOf(() => authenticate(credentials))).toBe("invalid");
  });

  test("no credential is the caller `anonymous`, or refused", async () => {
    const { authenticate } = open({ allowAnonymous });
    if (allowAnonymous) expect(await authenticate(of())).toEqual({ caller: anonymous });
    else expect(await kindOf(() => authenticate(of()))).toBe("missing");
  });

  test.each<[string, () => never]>([
    [
      "throws",
      () => {
        throw new Error("the secret of the database");
      },
    ],
    ["rejects", () => Promise.reject(new Error("the secret of the database")) as never],
  ])("a verifier that %s refuses the request and tells the client nothing", async (_what, verify) => {
    const { authenticate } = open({ allowAnonymous, verify });
    const error = await Promise.resolve()
      .then(() => authenticate(of("Bearer mw_1")))
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ kind: "invalid", message: expect.not.stringContaining("secret") });
  });
});

test("a store or issuer that cannot be reached is `unavailable`", async () => {
  const verify = () => {
    throw new AuthenticationError("unavailable", "The API keys cannot be read now; try again in a moment.");
  };
  const { authenticate } = open({ verify });
  expect(await kindOf(() => authenticate(of("Bearer mw_1")))).toBe("unavailable");
});

test.each<[string, () => never]>([
  [
    "throws",
    () => {
      throw new AuthenticationError("invalid", "The API key is unknown.");
    },
  ],
  ["rejects", () => Promise.reject(new AuthenticationError("unavailable", "Try again.")) as never],
])(
  "the home's token may have the form of a key: the verifier %s, and the token is the local user's",
  async (_, verify) => {
    const { authenticate, reset } = open({ verify });
    reset("mw_home");
    expect(await authenticate(of("Bearer mw_home"))).toMatchObject({ caller: localUser });
  },
);

test("the home's token is not read for a request with a valid key", async () => {
  let reads = 0;
  const authenticate = createAuthenticator({
    homeToken: () => String(++reads),
    localUser,
    allowAnonymous: false,
    verifiers: [{ accepts: () => true, verify: () => ({ caller: keyCaller("one") }) }],
  });
  expect(await authenticate(of("Bearer mw_1"))).toEqual({ caller: keyCaller("one") });
  expect(reads).toBe(0);
});

test("a verifier sees only the tokens of its own kind", async () => {
  const { authenticate, verified } = open();
  await authenticate(of("Bearer token-of-the-home"));
  await kindOf(() => authenticate(of("Bearer opaque")));
  expect(verified).toEqual([]);
  expect(await authenticate(of("bearer  mw_1"))).toEqual({ caller: keyCaller("one") });
  expect(verified).toEqual(["mw_1"]);
});

test("an empty token of the home identifies no caller", async () => {
  const authenticate = createAuthenticator({ homeToken: () => "", localUser, allowAnonymous: false });
  expect(await kindOf(() => authenticate(of("Bearer ")))).toBe("invalid");
  expect(await kindOf(() => authenticate(of("Bearer x")))).toBe("invalid");
});

test("errors name the issuers at which users sign in, and say that opaque tokens are not accepted", () => {
  const issuers = ["https://one.example", "https://two.example"];
  const authenticate = createAuthenticator({ homeToken: () => "x", localUser, allowAnonymous: false, issuers });
  const signIn = "sign in at https://one.example or https://two.example, or send `Authorization: Bearer …`";
  expect(() => authenticate(of())).toThrow(signIn);
  expect(() => authenticate(of("Bearer opaque"))).toThrow(
    `The bearer token is not a JWT, and opaque access tokens are not accepted; ${signIn}`,
  );
});

test("names API keys in errors only where they are accepted", () => {
  const keys: TokenVerifier = { accepts: (text) => text.startsWith("mw_"), verify: vi.fn() };
  const [without, withKeys] = [[], [keys]].map((verifiers) => {
    const authenticate = createAuthenticator({ homeToken: () => "t", localUser, allowAnonymous: false, verifiers });
    return () => authenticate(of("Bearer other"));
  });
  expect(without).toThrow(
    /^The bearer token is not this home's; send `Authorization: Bearer …` with what `meanwhile token` prints\.$/,
  );
  expect(withKeys).toThrow(
    /^The bearer token is no API key, and not this home's; send `Authorization: Bearer …` with an API key, or with what `meanwhile token` prints\.$/,
  );
});
