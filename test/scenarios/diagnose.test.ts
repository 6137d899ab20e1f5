import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { quoteWord } from "../../src/cli/remote/server-target.ts";
import { diagnoseServer } from "../../src/diagnose/diagnose-command.ts";
import type { Report } from "../../src/diagnose/report/report.ts";
import { serveFailing } from "../fixtures/diagnose/failing.mjs";
import { type FixtureOptions, startFixture } from "../fixtures/diagnose/server.mjs";
import "../helpers/diagnose.ts";
import { runCli, startCli } from "../helpers/cli.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { isRunningHere, ownProgram, programAt } from "../helpers/programs.ts";
import { passTimeQuickly } from "../helpers/quick-time.ts";
import { openServer } from "../helpers/server.ts";
import { typeHere } from "../helpers/terminal.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { resultOf } from "../helpers/wire.ts";

/** `meanwhile diagnose` as a person, a pipeline and a model use it. */

passTimeQuickly();

const fixture = path.resolve(import.meta.dirname, "../fixtures/diagnose/server.mjs");
const command = (...breaks: string[]) => [
  "--",
  process.execPath,
  fixture,
  ...breaks.flatMap((name) => ["--break", name]),
];

async function openFixture(options: FixtureOptions = {}): Promise<string> {
  const { url, close } = await startFixture(options);
  onTestFinished(async () => void (await close()));
  return url;
}

/** Types a line in a terminal that is not there; whoever would read or run a project's code is told so. */
async function type(words: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const { code, printed, said } = await typeHere(words);
  return { code, stdout: printed, stderr: said };
}

describe("wrong words get one sentence and change nothing", () => {
  test.each([
    [[], /Say which server to diagnose: meanwhile diagnose <url>/],
    [["ftp://example.org"], /cannot begin with ftp:; a server is reached by http/],
    [["unix:/run/server.sock"], /cannot begin with unix:/],
    [["https://example.org/mcp", "--async", "--detach"], /--async follows the task and --detach leaves it/],
    [["https://example.org/mcp", "--out", fixture], /--out .*server\.mjs cannot be written/],
    [["example.org/mcp"], /"example\.org\/mcp" is no URL; a server to start stands behind --/],
    [["https://user:pass@example.org/mcp"], /holds a user name or password/],
    [["https://example.org/mcp", "--", "node"], /The target is named twice/],
    [["--"], /The server's command is empty/],
    [
      ["https://example.org/mcp", "--suites", "protocoll"],
      /--suites: there is no "protocoll"; did you mean protocol\?/,
    ],
    [
      ["https://example.org/mcp", "--fail-on", "critical"],
      /--fail-on: there is no "critical"; there are blocker, major, minor, info, never\./,
    ],
    [["https://example.org/mcp", "--format", "json,html"], /--out <folder> writes them to files/],
    [["https://example.org/mcp", "--budget", "soon"], /--budget must be a time from 1s to 60m/],
    [["https://example.org/mcp", "--memory", "1"], /--memory must be a whole number of megabytes from 64 to 8192/],
    [["https://example.org/mcp", "--header", "secret-value"], /--header must read 'Name: value'/],
    [["https://example.org/mcp", "--token-env", "NOT_SET_AT_ALL"], /the variable NOT_SET_AT_ALL is not set/],
    [["https://example.org/mcp", "--args", "{}"], /name exactly one with --tool/],
    [["--task-ttl", "soon", ...command()], /--task-ttl must be a positive whole number/],
    [
      ["https://example.org/mcp", "--poll-interval", "500"],
      /--poll-interval is for diagnoses that run as a task; add --async/,
    ],
    [["--header", "A: b", ...command()], /are for servers that are reached by a URL/],
  ])("%j", async (words, sentence) => {
    const { code, stdout, stderr } = await type(["diagnose", ...words]);
    expect(stderr).toMatch(sentence);
    expect(stderr).not.toContain("secret-value");
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  });

  test("of the whole program, too, and no store is made", async () => {
    const { code, stdout, stderr, home } = await runCli([
      "diagnose",
      "https://example.org/mcp",
      "--header",
      "secret-value",
    ]);
    expect(stderr).toMatch(/--header must read 'Name: value'/);
    expect(stderr).not.toContain("secret-value");
    expect({ code, stdout, kept: existsSync(path.join(home, "tasks.db")) }).toEqual({
      code: 2,
      stdout: "",
      kept: false,
    });
  });
});

test("a tool that the server does not have is a wrong word, and the sentence lists those it has", async () => {
  const { code, stdout, stderr } = await runCli(["diagnose", "--suites", "hosts", "--tool", "read_clok", ...command()]);
  expect(stderr).toMatch(/The server has no tool read_clok; it has read_clock, read_slowly, write_note\./);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
});

test("a private address is refused before anything is sent, and --allow-private is named", async () => {
  const { code, stderr } = await runCli(["diagnose", "http://169.254.169.254/latest/meta-data"]);
  expect(stderr).toMatch(/169\.254\.169\.254, which is no public address.*--allow-private/);
  expect(code).toBe(1);
});

test("a command is shown in full before it is started, and stdout has the report alone", async () => {
  const { code, stdout, stderr } = await runCli(["diagnose", "--suites", "completion", ...command()]);
  expect(stderr).toContain(
    `This command is started on your machine, several times: ${[process.execPath, fixture].map(quoteWord).join(" ")}`,
  );
  expect(stdout).toMatch(/^fixture 1\.0\.0\n/);
  expect(stdout).toContain("100 of 100");
  expect(code).toBe(0);
});

test("--format json prints nothing but the report; --fail-on decides the exit code", async () => {
  const words = ["diagnose", "--quiet", "--suites", "protocol", "--format", "json"];
  const url = await openFixture({ breaks: ["protocol/unknown-method"] });
  const broken = await runCli([...words, url]);
  const report = JSON.parse(broken.stdout) as Report;
  expect(report.findings.map(({ id }) => id)).toEqual([
    "protocol/unknown-method:2026-07-28",
    "protocol/unknown-method:2025-11-25",
  ]);
  expect(report.findings[0]?.severity).not.toBe("blocker");
  expect(report.findings[0]?.severity).toBe("major");
  expect({ code: broken.code, stderr: broken.stderr }).toEqual({ code: 1, stderr: "" });
  const lenient = await runCli([...words, "--fail-on", "blocker", url]);
  expect(lenient.code).toBe(0);
});

describe("what was not seen to work", () => {
  const [, failing] = programAt("failing.mjs", serveFailing);
  const diagnose = (...words: string[]) => runCli(["diagnose", "--quiet", "--suites", "completion", ...words]);

  test("a call that the user named and that failed is the first line, there is no grade, and that is not fine", async () => {
    const { code, stdout } = await diagnose("--tool", "print", "--args", '{"page":1}', "--", process.execPath, failing);
    expect(stdout).toMatch(/^✗ print, which you named, failed: Error: there is no printer\.\n/);
    expect(stdout).toMatch(/\nno grade {3}The one tool that was called did not succeed, so there is no grade/);
    expect(stdout).toMatch(/\nSkipped\n +\d+ /);
    expect(code).toBe(1);
  });

  test("a tool that was named and that nobody could call is told as well", async () => {
    const { code, stdout } = await diagnose(
      "--format",
      "json",
      "--tool",
      "unguessable",
      "--",
      process.execPath,
      failing,
    );
    const { headline, calls, score } = JSON.parse(stdout) as Report;
    expect(headline).toBe(
      "unguessable, which you named, could not be called: no arguments could be guessed for it; give some with --args.",
    );
    expect(calls).toEqual([{ tool: "unguessable", isNamed: true, outcome: "not called", note: expect.any(String) }]);
    expect({ code, grade: score.grade, points: score.points }).toEqual({ code: 1, grade: null, points: null });
  });

  test("a server none of whose tools may be called has no grade and says so, in every format", async () => {
    const out = temporaryFolder();
    const { code, stdout } = await diagnose("--out", out, "--", process.execPath, failing);
    expect(stdout).toBe("");
    const why = "No tool was called, so there is no grade: none says that it only reads";
    for (const name of readdirSync(out)) expect(readFileSync(path.join(out, name), "utf8"), name).toContain(why);
    expect((JSON.parse(readFileSync(path.join(out, "diagnose.json"), "utf8")) as Report).score).toMatchObject({
      points: null,
      grade: null,
    });
    expect(code).toBe(0);
  });
});

describe("a server whose only tool says that it takes ten minutes", () => {
  const tools = [
    { name: "slow_report", description: "Takes ten minutes and reports nothing.", inputSchema: { type: "object" } },
  ];
  const [, slow] = programAt("slow.mjs", (host) => serveFailing(host, tools));
  const target = ["--", process.execPath, slow];
  const diagnose = (...words: string[]) => runCli(["diagnose", "--quiet", ...words, ...target]);

  test("has a finding, and the first line, the last line, the grade and the exit code follow it", async () => {
    const { code, stdout } = await diagnose("--suites", "hosts");
    const flat = stdout.replaceAll(/\s+/g, " ");
    const title = "not tested: 15 hosts would cut it after 30 to 300 seconds; name it with `--tool slow_report`";
    expect(flat).toMatch(/^✗ slow_report says that it is slow, and was not tested: 15 hosts would cut it after/);
    expect(flat).toContain(`▲ major hosts/slow-call · slow_report ${title}`);
    expect(flat).toMatch(/no grade No tool was called, so there is no grade/);
    expect(flat).toMatch(/ no grade 1 finding: 1 major; not tested: slow_report $/);
    expect(stdout).not.toContain("Nothing is wrong");
    expect(code).toBe(1);
  });

  test("has the exit code 0 with a higher --fail-on, and without the suite", async () => {
    expect((await diagnose("--suites", "hosts", "--fail-on", "blocker")).code).toBe(0);
    expect((await diagnose("--suites", "hosts", "--fail-on", "never")).code).toBe(0);
    const { code, stdout } = await diagnose("--suites", "completion");
    expect(stdout).toContain("! Nothing was found, and no tool was called: name one with --tool <name>.\n");
    expect(code).toBe(0);
  });

  test("has no such finding when the tool was called", async () => {
    const { code, stdout } = await diagnose("--tool", "slow_report");
    expect(stdout).not.toContain("not tested");
    expect(stdout).toMatch(/^✗ slow_report, which you named, failed: Error: there is no printer\.\n/);
    expect(code).toBe(1);
  });
});

test("an F never exits 0, whatever --fail-on says", async () => {
  const breaks = ["hidden-text", "secret-in-text", "hidden-text~instructions", "rebinding", "guessable-session"].map(
    (name) => `security/${name}`,
  );
  const worst = [
    "protocol/unknown-method",
    "protocol/unknown-tool",
    "protocol/lists~undone",
    "protocol/ping",
    "completion/values",
  ];
  // Findings do not decide with `never`; the grade does all the same.
  const words = [
    "diagnose",
    "--quiet",
    "--format",
    "json",
    "--fail-on",
    "never",
    "--suites",
    "protocol,completion,security",
  ];
  const { code, stdout } = await runCli([...words, await openFixture({ breaks: [...breaks, ...worst] })]);
  expect({ grade: (JSON.parse(stdout) as Report).score.grade, code }).toEqual({ grade: "F", code: 1 });
});

test("reports are kept in the home, for its user alone, the last fifty; compare takes the last two of a target", async () => {
  const home = temporaryFolder();
  const env = { MEANWHILE_HOME: home };
  const reports = path.join(home, "reports");
  const none = await runCli(["compare"], { env });
  expect({ code: none.code, stderr: none.stderr }).toEqual({
    code: 2,
    stderr: expect.stringContaining("No diagnosis was kept yet"),
  });
  writeFiles(
    reports,
    Object.fromEntries(
      Array.from({ length: 50 }, (_, at) => [`2020-01-01T00-00-00.${String(at).padStart(3, "0")}Z-old.json`, "{}"]),
    ),
  );
  writeFiles(reports, { "mine.txt": "not theirs" });
  const words = ["diagnose", "--suites", "completion"];
  const first = await runCli([...words, ...command()], { env });
  const kept = /✓ Report kept: (\S+)\n/.exec(first.stderr)?.[1] ?? "";
  expect(kept).toMatch(new RegExp(`^${reports}/\\d{4}-[\\dTZ.-]+-fixture\\.json$`));
  expect((JSON.parse(readFileSync(kept, "utf8")) as Report).score.grade).toBe("A");
  expect([statSync(kept).mode & 0o777, statSync(home).mode & 0o777]).toEqual([0o600, 0o700]);
  expect(readdirSync(reports).filter((name) => name.endsWith(".json"))).toHaveLength(50);
  expect(readdirSync(reports)).toContain("mine.txt");
  expect(readdirSync(reports)).not.toContain("2020-01-01T00-00-00.000Z-old.json");
  const once = await runCli(["compare"], { env });
  expect({ code: once.code, stderr: once.stderr }).toEqual({
    code: 2,
    stderr: expect.stringContaining("2020-01-01T00-00-00.049Z-old.json is no report"),
  });
  await runCli([...words, "--quiet", ...command()], { env });
  const twice = await runCli(["compare"], { env });
  expect({ code: twice.code, last: twice.stdout.split("\n").at(-2) }).toEqual({
    code: 0,
    last: "Nothing changed: 0 findings in both.",
  });
});

test("--out writes every format, and --deterministic writes the same bytes again", async () => {
  const url = await openFixture();
  const folder = temporaryFolder();
  const write = async (name: string) => {
    const out = path.join(folder, name);
    const { code, stderr } = await runCli([
      "diagnose",
      url,
      "--deterministic",
      "--suites",
      "protocol,completion",
      "--out",
      out,
    ]);
    expect(code, stderr).toBe(0);
    return Object.fromEntries(readdirSync(out).map((file) => [file, readFileSync(path.join(out, file), "utf8")]));
  };
  const [first, second] = [await write("a"), await write("b")];
  expect(Object.keys(first).sort()).toEqual(["diagnose.html", "diagnose.json", "diagnose.md", "diagnose.sarif"]);
  expect(second).toEqual(first);
});

test("credentials reach the server and no report", async () => {
  const url = await openFixture({ tokens: ["caller-one-secret", "caller-two-secret"] });
  const words = [
    "diagnose",
    url,
    "--suites",
    "protocol,security",
    "--token-env",
    "DIAGNOSE_TOKEN",
    "--other-header",
    "Authorization: Bearer caller-two-secret",
    "--foreign-header",
    "Authorization: Bearer caller-three-secret",
  ];
  const { code, stdout, stderr } = await runCli([...words, "--format", "json"], {
    env: { DIAGNOSE_TOKEN: "caller-one-secret" },
  });
  const { checks } = JSON.parse(stdout) as Report;
  expect(checks.filter(({ outcome }) => outcome === "passed").length).toBeGreaterThan(10);
  expect(`${stdout}${stderr}`).not.toMatch(/caller-(one|two|three)-secret/);
  expect(code).toBe(0);
});

test("a server that does not answer is a blocker with the reason, and exit code 1", async () => {
  const { code, stdout } = await runCli([
    "diagnose",
    "--format",
    "json",
    "--",
    ...ownProgram(({ stderr, exit }) => void stderr.write("no config\n", () => exit(3))),
  ]);
  const { findings, incomplete, checks, score } = JSON.parse(stdout) as Report;
  expect(findings.map(({ id, severity }) => `${id} ${severity}`)).toEqual(["protocol/answers blocker"]);
  expect(JSON.stringify(findings)).toContain("no config");
  expect(score.explanation).toBe("The server could not be spoken to, so there is no grade.");
  expect(incomplete).toMatch(/could not be spoken to/);
  expect(new Set(checks.filter(({ id }) => id !== "protocol/answers").map(({ outcome }) => outcome))).toEqual(
    new Set(["skipped"]),
  );
  expect(code).toBe(1);
});

test("a server that wants credentials is not judged: it is said how to give them, and that is not fine", async () => {
  const url = await openFixture({ tokens: ["one"] });
  const { code, stdout } = await runCli(["diagnose", url, "--format", "json", "--quiet"]);
  const { findings, incomplete, score } = JSON.parse(stdout) as Report;
  expect(findings.filter(({ severity }) => severity === "blocker")).toEqual([]);
  expect(incomplete).toMatch(/wants credentials.*--token-env NAME/);
  expect(score.explanation).toMatch(/there is no grade/);
  expect(code).toBe(1);
});

test("of a server that nobody could speak to, nothing is told but that", async () => {
  const { code, stdout } = await runCli(["diagnose", "http://127.0.0.1:9/mcp", "--quiet"]);
  expect(stdout).toMatch(
    /^http:\/\/127\.0\.0\.1:9\/mcp\nhttp · quick checks in [^\n]+\n\nno grade {3}The server could not be spoken to/,
  );
  expect(stdout).toContain("Nothing listens at this address");
  expect(code).toBe(1);
});

test("Ctrl-C ends it with 130, and no server is left behind", async () => {
  const pids: number[] = [];
  const server = ownProgram(({ pid, signals }) => {
    pids.push(pid);
    signals.on("SIGTERM", () => {});
  });
  const run = startCli(["diagnose", "--", ...server]);
  await waitFor(() => pids.length === 2);
  run.signal("SIGINT");
  expect(await run.exited, run.stderr()).toBe(130);
  await waitFor(() => !pids.some(isRunningHere));
});

test("--async prints the story of its task, and --task takes it up again", async () => {
  const folder = temporaryFolder();
  const words = [
    "diagnose",
    "--async",
    "--task-ttl",
    "300000",
    "--poll-interval",
    "200",
    "--no-color",
    "--suites",
    "completion,progress",
    "--out",
    path.join(folder, "reports"),
    await openFixture(),
  ];
  const env = { MEANWHILE_HOME: path.join(folder, "home") };
  const told = await runCli(words, { cwd: folder, env });
  expect(told.stderr).toMatch(
    /› Asking for a task\n {2}Endpoint: http:\/\/127\.0\.0\.1:.*\n {2}TTL: 5 min\n {2}Poll interval: 200 ms\n✓ Task created: [\w-]{36}\n {2}Status: working\n[\s\S]*› Waiting for its end\n {2}\[[\d.]+s\] working - [\s\S]*Running progress suite[\s\S]*\] completed\n✓ Task completed\n {2}Total time: [\d.]+s\n {2}Polls: \d+\n› Retrieving the result\n✓ Reports written to: /,
  );
  expect(told.code).toBe(0);

  const taskId = /Task created: ([\w-]{36})/.exec(told.stderr)?.[1] ?? "";
  const again = await runCli(["diagnose", "--task", taskId], { cwd: folder, env });
  expect(again.stderr).toMatch(/› Taking up a diagnosis of http:.*\n/);
  expect(again.stderr).not.toContain("Asking for a task");
});

describe("as the MCP tool diagnose_server", () => {
  const serve = async (config: object) => {
    const server = await openServer({ in: "http", commands: { diagnose_server: diagnoseServer }, config });
    return await server.client("tasks-2025");
  };

  test("it takes URLs and never commands, and refuses this machine and private networks", async () => {
    const client = await serve({});
    const listed = resultOf(await client.request("tools/list")) as unknown as { tools: ListedTool[] };
    const tool = listed.tools.find(({ name }) => name === "diagnose_server");
    expect(Object.keys(tool?.inputSchema.properties ?? {})).toEqual([
      "url",
      "headers",
      "suites",
      "full",
      "budgetSeconds",
      "memoryMb",
      "deterministic",
    ]);
    expect(tool?.annotations.readOnlyHint).toBe(true);
    for (const [input, sentence] of [
      [{ url: "http://127.0.0.1:9/mcp" }, /this machine itself.*diagnose: \{ allowPrivate: true \}/],
      [{ url: "http://localhost:9/mcp" }, /this machine itself.*diagnose: \{ allowPrivate: true \}/],
      [{ url: "http://169.254.169.254/" }, /no public address/],
      [{ url: "https://example.org/mcp", argv: ["node"] }, /argv/],
      [{ target: { kind: "stdio", argv: ["node"] } }, /url/],
    ] as const) {
      const { isError, content } = (await client.call("diagnose_server", input)) as unknown as {
        isError: boolean;
        content: { text: string }[];
      };
      expect(isError).toBe(true);
      expect(content[0]?.text).toMatch(sentence);
    }
    // What the terminal uses is no tool.
    for (const name of ["diagnose", "diagnose_tools"])
      expect((await client.startCall(name, { target: {} }).answer).error?.code).toBe(-32602);
  });

  test("with allowPrivate it runs as a task and gives the report", async () => {
    const client = await serve({ diagnose: { allowPrivate: true } });
    const url = await openFixture();
    const { task } = (await client.call(
      "diagnose_server",
      { url, suites: ["completion"] },
      { task: { ttl: 60_000 } },
    )) as unknown as {
      task: { taskId: string };
    };
    const result = resultOf(await client.request("tasks/result", { taskId: task.taskId })) as unknown as {
      structuredContent: { data: Report };
    };
    const { score, target, checks } = result.structuredContent.data;
    expect(Object.keys(checks[0] ?? {})).toEqual(["id", "outcome"]);
    expect({ points: score.points, server: target.server }).toEqual({
      points: 100,
      server: { name: "fixture", version: "1.0.0" },
    });
  });
});

interface ListedTool {
  readonly name: string;
  readonly inputSchema: { readonly properties: object };
  readonly annotations: { readonly readOnlyHint: boolean };
}
