import { describe, expect, test } from "vitest";
import { describeTarget, quoteWord, readTarget, splitWords, toCommand } from "../../../src/cli/remote/server-target.ts";
import { UsageError } from "../../../src/errors.ts";

describe("a target", () => {
  test.each([
    ["https://host/mcp", { kind: "url", url: "https://host/mcp" }],
    ["HTTP://127.0.0.1:7337/mcp", { kind: "url", url: "HTTP://127.0.0.1:7337/mcp" }],
    ["unix:/run/a b", { kind: "socket", socket: "/run/a b" }],
    ["./mcp.sock", { kind: "socket", socket: "./mcp.sock" }],
    [".", { kind: "own" }],
    ["node", { kind: "command", command: "node", args: [] }],
    ["node server.js --listen x.sock", { kind: "command", command: "node", args: ["server.js", "--listen", "x.sock"] }],
    [`'my server' "a \\"b\\" c" d\\ e ''`, { kind: "command", command: "my server", args: ['a "b" c', "d e", ""] }],
  ])("%s", (text, target) => {
    expect(readTarget(text)).toEqual(target);
  });

  test.each([
    ["", /^The target is empty/],
    ["   ", /^The target is empty/],
    ["http://", /not a URL/],
    ["unix:", /needs the path of a socket/],
    ["ws://host/mcp", /cannot begin with ws:\/\/; .* http:\/\//],
    ["node 'server.js", /has a ' that is never closed/],
    ['node "', /has a " that is never closed/],
    ["node \\", /ends with a backslash/],
    ["''", /command is empty/],
  ])("%j is refused in one sentence", (text, sentence) => {
    expect(() => readTarget(text)).toThrow(UsageError);
    expect(() => readTarget(text)).toThrow(sentence);
  });

  test("a password in a URL is refused, and not repeated", () => {
    expect(() => readTarget("https://me:geheim@host/mcp")).toThrow(/--token-env NAME/);
    expect(() => readTarget("https://me:geheim@host/mcp")).not.toThrow(/geheim/);
  });

  test("nothing but quotes and backslashes means anything in a command line", () => {
    expect(splitWords("a $HOME `b` *.js; c | d > e 'x'\"y\"z '\\n' \"\\n\"")).toEqual([
      "a",
      "$HOME",
      "`b`",
      "*.js;",
      "c",
      "|",
      "d",
      ">",
      "e",
      "xyz",
      "\\n",
      "\\n",
    ]);
  });

  test("it is shown as it would be typed, without what may be a secret", () => {
    expect(describeTarget(readTarget("https://host/mcp?key=geheim"))).toBe("https://host/mcp?…");
    expect(describeTarget(toCommand(["node", "my server.js", "it's"]))).toBe(`node 'my server.js' 'it'\\''s'`);
    for (const text of [".", "unix:/run/x.sock", "https://host/mcp", "node 'a b' \"c'd\""]) {
      const target = readTarget(text);
      expect(readTarget(describeTarget(target))).toEqual(target);
    }
    expect(splitWords(quoteWord("a b'c\\d"))).toEqual(["a b'c\\d"]);
  });
});
