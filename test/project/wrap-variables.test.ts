import { expect, test } from "vitest";
import { readWrapVariables } from "../../src/project/wrap-variables.ts";
import { readWrapWords, toWrap } from "../../src/project/wrap-words.ts";

const key = "MEANWHILE_URL";
const reference = `\${${key}}`;
const env = {
  [key]: "https://example.com/mcp?key=secret",
  MEANWHILE_HEADER_1: "Authorization: Bearer secret",
  MEANWHILE_HEADER_2: "X_Odd: a: b",
  MEANWHILE_HEADER_OTHER: "none",
  MEANWHILE_HEADER_3: "",
};

test("an address and headers may be said in variables, where a command line is not the place", () => {
  const wrap = readWrapWords(["wrap", "--name", "x", "--transport", "sse"], "/", readWrapVariables(env));
  expect(wrap?.upstreams).toEqual({
    x: { url: reference, headers: { Authorization: "Bearer secret", X_Odd: "a: b" }, transport: "sse" },
  });
});

test("what is typed comes first, and a command has nothing of it", () => {
  const variables = readWrapVariables(env);
  expect(toWrap({ url: "https://typed.test/mcp", variables }, "/").upstreams).toEqual({
    typed: { url: "https://typed.test/mcp", headers: { Authorization: "Bearer secret", X_Odd: "a: b" } },
  });
  expect(toWrap({ server: ["a"], variables }, "/").upstreams).toEqual({ a: { command: "a", args: [] } });
  expect(toWrap({ variables }, "/").upstreams).toHaveProperty("example");
});

test("what is wrong with them is said without repeating it", () => {
  const said =
    (found: Record<string, string>, typed = {}) =>
    () =>
      toWrap({ ...typed, variables: readWrapVariables(found) }, "/");
  expect(said({ [key]: "secret" })).toThrow("MEANWHILE_URL must begin with http:// or https://.");
  expect(said({ [key]: "https://a.test", MEANWHILE_HEADER_1: "secret" })).toThrow(/^(?!.*secret).*no colon/);
  expect(said({}, { server: ["a"], transport: "sse" })).toThrow("--transport is for --url.");
  expect(said({}, { url: "https://a.test", transport: "ws" })).toThrow('must be one of http, sse, not "ws"');
});
