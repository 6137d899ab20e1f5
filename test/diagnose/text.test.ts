import { describe, expect, test } from "vitest";
import { secretsOf } from "../../src/diagnose/diagnosis-target.ts";
import { printable, redact } from "../../src/diagnose/text.ts";
import { reached } from "../helpers/diagnose.ts";

describe("what is shown is on one line and obeyed by nobody", () => {
  test.each([
    ["terminal escapes", "a\u001b[31mb\u009b2Jc\u0007", "a�[31mb�2Jc�"],
    ["line ends of every kind", "a\r\nb\u2028c\u0085d", "a b c�d"],
    ["marks that turn the direction", "a\u202eb\u2066c\u200fd\u061ce", "a�b�c�d�e"],
    ["marks without width", "a\u200bb\u200dc\u2060d\u00ade", "a�b�c�d�e"],
    ["tags", "a\u{e0041}\u{e007f}", "a��"],
    ["selectors in a row", "a\ufe00\u{e0100}", "a��"],
    ["letters that are drawn as nothing", "a\u3164\u115f\u034fb", "a���b"],
    ["halves of a character", "a\ud83d b\ude00", "a� b�"],
    ["private letters", "a\ue000", "a�"],
  ])("%s", (_what, text, shown) => expect(printable(text)).toBe(shown));

  test("and what people write stays as it is", () => {
    const text = "Größe 5 €, 日本語, עברית, 👍 ❤️";
    expect(printable(text)).toBe(text);
  });

  test("a long text is cut, between characters", () => {
    expect(printable("x".repeat(500))).toBe(`${"x".repeat(400)}…`);
    expect(printable(`${"x".repeat(9)}😀😀`, 10)).toBe(`${"x".repeat(9)}…`);
    expect(printable(`${" ".repeat(100)}x`, 10)).toBe("…");
  });
});

describe("what is secret is blanked", () => {
  test.each([
    ['{"authorization":"Bearer abc","x":1}', '{"authorization":•••,"x":1}'],
    ["Authorization: Bearer abcdefgh-ijkl", "Authorization: •••"],
    ["Set-Cookie: id=1234; Path=/", "Set-Cookie: •••; Path=/"],
    ['{"error":"{\\"password\\":\\"hunter22\\"}"}', '{"error":"{\\"password\\":•••}"}'],
    ["?access_token=abcdef&x=1", "?access_token=•••"],
    ["AWS_SECRET_ACCESS_KEY=abc/def", "AWS_SECRET_ACCESS_KEY=•••"],
    ["postgres://me:hunter22@db/x", "•••db/x"],
  ])("%s", (text, shown) => expect(redact(text)).toBe(shown));

  test("by its look, wherever it stands", () => {
    const secrets = [
      ["sk", "proj", "Ab12Cd34Ef56Gh78"].join("-"),
      ["ghp", "Ab12Cd34Ef56Gh78Ij90"].join("_"),
      ["AKIA", "AB12CD34EF56GH78"].join(""),
      [["eyJ", "hbGciOiJIUzI1NiJ9"].join(""), "eyJzdWIiOiIxMjM0In0", "c2ln"].join("."),
      ["xoxb", "1234567890", "abcdef"].join("-"),
    ];
    for (const secret of secrets) expect(redact(`say ${secret} to nobody`)).toBe("say ••• to nobody");
  });

  test("a token of progress is none", () => expect(redact('{"progressToken":7}')).toBe('{"progressToken":7}'));

  test("by its value, as it is, in JSON and in a URL", () => {
    const secret = 'se"cret/1';
    for (const text of [
      secret,
      JSON.stringify(secret),
      JSON.stringify(JSON.stringify(secret)),
      encodeURIComponent(secret),
    ])
      expect(redact(`value ${text}.`, [secret])).not.toMatch(/cret/);
  });

  test("half of one is not shown where a long text is cut", () => {
    const token = "Zx9".repeat(40);
    for (const before of [9_880, 9_900, 9_950, 9_999])
      expect(redact(`${"word ".repeat(before / 5)}${token} end`, [token])).not.toContain("Zx9");
  });

  test("the passwords within what is sent are known too", () => {
    const basic = `Basic ${Buffer.from("me:hunter22").toString("base64")}`;
    const target = reached("https://example.org/mcp?key=abcd1234", {
      authorization: basic,
      cookie: "id=0123456789; theme=dark",
    });
    const secrets = secretsOf(target);
    expect(secrets).toEqual(expect.arrayContaining([basic, "hunter22", "0123456789", "abcd1234"]));
    expect(redact("hunter22 0123456789 abcd1234", secrets)).toBe("••• ••• •••");
  });

  test("and no text makes it slow", () => {
    const pieces = [
      "-eyJ",
      "-eyJaaaaaaaaa.",
      "a.",
      'token="',
      "a://b:",
      "Bearer ",
      "sk-",
      "A",
      '\\"token\\":\\"',
      "SG.aaaaaaaaaaaaaaaaaaaa",
      "-----BEGIN ",
    ];
    const startedAt = performance.now();
    for (const piece of pieces) printable(redact(piece.repeat(20_000)));
    // About 10 ms; patterns without bounds take minutes.
    expect(performance.now() - startedAt).toBeLessThan(30_000);
  });
});
