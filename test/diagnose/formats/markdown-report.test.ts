import { describe, expect, test } from "vitest";
import { toMarkdown } from "../../../src/diagnose/formats/markdown-report.ts";
import type { Report } from "../../../src/diagnose/report/report.ts";
import { sample } from "../../fixtures/diagnose/reports/samples.ts";

const [bad, hostile] = [sample("bad"), sample("hostile")];

describe("as Markdown", () => {
  test("a heading, the score, a table, then each finding with its evidence, and all checks folded", () => {
    const text = toMarkdown(bad);
    expect(text).toMatch(/^## Diagnosis: 21 of 100, grade F\n/);
    expect(text).toContain(
      "| ⛔ blocker | It prints lines that are no messages on its standard output. | `protocol/stdout` |",
    );
    expect(text).toContain(
      "| 🔴 major | Codex CLI cuts `export_archive` after 300 s. _and 13 more_ | `hosts/slow-call` |",
    );
    expect(text).toContain(
      "**What to change:** Write logs with console.error, or to a file; standard output belongs to the protocol.",
    );
    expect(text).toContain("printed:\n\n```text\nServer listening on stdio\n```");
    expect(text).toMatch(/<details><summary>All 20 checks<\/summary>\n\n\| Outcome \|[\s\S]*<\/details>\n$/);
  });

  test("it fits into a comment, and says what did not", () => {
    const many = Array.from({ length: 900 }, (_, at) => ({
      ...(bad.findings[0] as Report["findings"][number]),
      id: `protocol/x:${at}`,
      remedy: `Change ${at}.`,
    }));
    const text = toMarkdown({ ...bad, findings: many });
    expect(text.length).toBeLessThan(65_536);
    expect(text).toMatch(/_\d+ sections did not fit here; the JSON and HTML reports have everything\._\n$/);
  });

  test("a fence is longer than any in it", () => {
    expect(toMarkdown(hostile)).toContain("\n`````text\n````\n</details>\n```js\n");
  });

  test("what ends a sentence stays outside of a word that is shown as code", () => {
    const [finding] = bad.findings;
    const told = (why: string) => toMarkdown({ ...bad, findings: [{ ...finding, why } as Report["findings"][number]] });
    expect(told("See github/copilot-cli #2538. And more.")).toContain("See github/copilot-cli `#2538`. And more.");
    expect(told("Two (#1, @me) at https://x.example/a?b=c.")).toContain(
      "Two (`#1`, `@me`) at `https://x.example/a?b=c`.",
    );
  });

  test("nobody is mentioned, nothing becomes a link", () => {
    const text = toMarkdown(hostile);
    for (const word of [
      "`@octocat`",
      "`#12`",
      "`www.evil.example`",
      "&lt;https\\://evil.example&gt;",
      "\\[x\\](javascript:alert(5))",
    ])
      expect(text).toContain(word);
  });
});
