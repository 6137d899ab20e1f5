import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Facts } from "../../../src/diagnose/asking/facts.ts";
import { security } from "../../../src/diagnose/suites/security/index.ts";
import { type Fixture, foreignToken, startFixture } from "../../fixtures/diagnose/server.mjs";
import { ask, piped, reached, surveyed } from "../../helpers/diagnose.ts";
import { temporaryFolder } from "../../helpers/home.ts";
import { passTimeQuickly } from "../../helpers/quick-time.ts";
import { askAll, askedOf, breaksOf, checkOf, findingsIn, outcomesIn } from "../../helpers/suite.ts";

const tokens = ["alpha-token-of-the-first", "beta-token-of-the-second"];
const [first, second] = tokens.map((token) => ({ authorization: `Bearer ${token}` }));
const asFirst = (url: string) => reached(url, first, second, { authorization: `Bearer ${foreignToken}` });

passTimeQuickly();

let good: Fixture;
let facts: Facts;

beforeAll(async () => {
  good = await startFixture({ tokens });
  facts = await surveyed(asFirst(good.url));
});
afterAll(() => good.close());

/** What a server is told that asks for no credentials, on this machine. */
const open = {
  id: "security/no-credentials",
  severity: "info",
  title: "The server lets in every program of every user on this machine: it asks for no credentials",
};

describe("a server that keeps its door", () => {
  test("passes everything with two callers; the way to itself is not asked about", async () => {
    const passed = Object.fromEntries(security.map(({ id }) => [id, "passed"]));
    expect(outcomesIn(await askAll(security, asFirst(good.url), { facts }))).toEqual({
      ...passed,
      "security/plain-http": "skipped",
    });
  });

  test("passes over stdio what is asked there", async () => {
    const asked = security.filter(({ transport }) => transport !== "http");
    const verdicts = await askAll(asked, piped("server.mjs"), { facts: { ...facts, transport: "stdio" } });
    expect(outcomesIn(verdicts)).toEqual(Object.fromEntries(asked.map(({ id }) => [id, "passed"])));
  });

  test("is asked about credentials and callers only where there are some, and says how to give them", async () => {
    const { url, close } = await startFixture();
    const verdicts = await askAll(security, reached(url), { facts });
    await close();
    expect(findingsIn(verdicts)).toEqual([open]);
    const skips = Object.entries(verdicts).flatMap(([id, verdict]) =>
      verdict.outcome === "skipped" ? [[id, verdict.why]] : [],
    );
    const needs =
      "No credentials were given; give those that the server wants with --token-env NAME (or --header 'Name: value').";
    expect(Object.fromEntries(skips)).toEqual({
      "security/wrong-credentials": needs,
      "security/foreign-audience":
        "It takes a token that the same issuer has issued for another server; give it with --foreign-header 'Authorization: Bearer …'.",
      "security/sign-in-hint": "The server asks for no credentials.",
      "security/plain-http": "The server is on this machine.",
      "security/token-in-url": needs,
      "security/stolen-session": needs,
      "security/foreign-task":
        "It takes two callers; give the other's credentials with --other-header 'Authorization: Bearer …'.",
    });
  });

  test("is asked what can be asked when it wants credentials that nobody gave", async () => {
    const locked = await surveyed(reached(good.url));
    expect(locked.isLocked).toBe(true);
    const asked = security.filter(({ isForLocked }) => isForLocked === true);
    expect(outcomesIn(await askAll(asked, reached(good.url), { facts: locked }))).toEqual(
      Object.fromEntries(asked.map(({ id }) => [id, "passed"])),
    );
  });
});

interface Expected {
  readonly title: string;
  readonly severity?: string;
  readonly subject?: string;
  /** Without tokens, so that nothing but the door itself holds a web page back. */
  readonly isOpen?: boolean;
}

const clock = { subject: "tool read_clock" };
const hides = (what: string, more: Partial<Expected> = {}): Expected => ({
  ...clock,
  severity: "major",
  title: `The text of tool read_clock holds ${what}`,
  ...more,
});
const orders = (what: string): Expected => ({ ...clock, title: `The text of tool read_clock ${what}` });
const bothTasks = (title: string): Expected[] => ["2025-11-25", "2026-07-28"].map((subject) => ({ subject, title }));

const handedOut: readonly Expected[] = [
  {
    subject: "read_page",
    severity: "blocker",
    title: "read_page hands out a file of its user's that nobody else may read (mode 0600)",
  },
  { title: "read_page (path) takes any text as a path" },
];

/** What each broken server is told; this table makes the file long, and is read beside the tests that use it. */
const expected: Readonly<Record<string, Expected | readonly Expected[]>> = {
  "security/no-credentials": {
    severity: "major",
    title:
      "The server lets in every program of every user on this machine: it works without the credentials that were given",
  },
  "security/wrong-credentials": { title: "The server takes a token that nobody gave out" },
  "security/foreign-audience": { title: "The server accepts a token that was issued for another server" },
  "security/sign-in-hint": { title: "The refusal names no way to sign in: WWW-Authenticate is missing" },
  "security/sign-in-hint~forbidden": {
    title: "A caller without credentials is answered with 403, where hosts expect 401",
  },
  "security/sign-in-hint~unreadable": { title: "The sign-in metadata that the refusal names cannot be read" },
  "security/sign-in-hint~elsewhere": {
    severity: "major",
    title: "The sign-in metadata lies on another address without TLS",
  },
  "security/sign-in-hint~no-url": { title: "The address of the sign-in metadata is no http or https URL" },
  "security/token-in-url": { title: "The server takes the token from its address (?access_token=)" },
  "security/token-in-url~redirect": { title: "The server redirects to an address with the token in it" },
  "security/rebinding": { isOpen: true, title: "Any web page that its user visits can call the tools" },
  "security/foreign-origin": {
    isOpen: true,
    title: "Requests of foreign web pages are taken; only the browser holds them back",
  },
  "security/foreign-origin~readable": {
    isOpen: true,
    severity: "major",
    title: "Any web page may call the tools and read the results",
  },
  "security/foreign-origin~plain-text": {
    isOpen: true,
    severity: "major",
    title: "Any web page can have tools called, though it does not see the results",
  },
  "security/open-cors": { title: "Every web page may act with its visitor's cookies" },
  "security/open-cors~star": {
    severity: "minor",
    title: "Every web page is allowed credentials, which browsers refuse",
  },
  "security/chosen-session": { title: "The client chooses the session's id" },
  "security/chosen-session~made-up": { title: "A session id that nobody gave out is taken for a session" },
  "security/stolen-session": {
    subject: "another caller",
    title: "A session can be used with another caller's credentials",
  },
  "security/stolen-session~no-credentials": {
    subject: "no credentials",
    severity: "blocker",
    title: "The id of a session opens it without credentials",
  },
  "security/guessable-session": { title: "Session ids differ in so little that they can be guessed" },
  "security/guessable-session~time": {
    title: "Session ids are made from the time and the machine's address (UUID version 1)",
  },
  "security/foreign-task": bothTasks("Another caller can read a task"),
  "security/foreign-task~told": bothTasks("The answer tells another caller that the task exists").map((one) => ({
    ...one,
    severity: "minor",
  })),
  "security/foreign-task~listed": { subject: "2025-11-25", title: "Another caller finds the task in a list" },
  "security/foreign-task~cancelled": { subject: "2026-07-28", title: "Another caller can cancel a task" },
  "security/error-leak": { subject: "a stack trace", severity: "minor", title: "An error shows a stack trace" },
  "security/error-leak~path": {
    subject: "a path of the server's disk",
    severity: "minor",
    title: "An error shows a path of the server's disk",
  },
  "security/error-leak~query": {
    subject: "the text of a query or an error of the database",
    severity: "minor",
    title: "An error shows the text of a query or an error of the database",
  },
  "security/error-leak~environment": {
    subject: "environment variables",
    severity: "major",
    title: "An error shows environment variables",
  },
  "security/error-leak~answer": { subject: "a stack trace", severity: "minor", title: "An answer shows a stack trace" },
  "security/error-leak~page": { subject: "a stack trace", severity: "minor", title: "An error shows a stack trace" },
  "security/hidden-text": hides("invisible letters (Unicode tags)"),
  "security/hidden-text~escape": hides("control characters that a terminal obeys"),
  "security/hidden-text~direction": hides("marks that turn the direction of writing"),
  "security/hidden-text~width": hides("characters without width", { severity: "minor" }),
  "security/hidden-text~message": hides("characters without width"),
  "security/hidden-text~prompt": {
    subject: "prompt visit",
    severity: "major",
    title: "The text of prompt visit holds invisible letters (Unicode tags)",
  },
  "security/hidden-text~instructions": {
    subject: "the server",
    severity: "major",
    title: "The text of the server holds control characters that a terminal obeys",
  },
  "security/instructing-text": orders("tells the model to forget its instructions"),
  "security/instructing-text~secret": orders("tells the model to keep something from its user"),
  "security/instructing-text~marks": orders("imitates the marks of a system's own messages"),
  "security/instructing-text~files": orders("sends the model to files with secrets"),
  "security/instructing-text~others": orders("gives orders about other servers' tools"),
  "security/instructing-text~comment": orders("has a comment that a rendered page does not show"),
  "security/instructing-text~encoded": orders("holds a long row of encoded data"),
  "security/instructing-text~schema": orders("tells the model to forget its instructions"),
  "security/secret-in-text": {
    subject: "tool read_mail",
    title: "The text of tool read_mail holds what looks like a GitHub token",
  },
  "security/open-address": { title: "read_page (url) takes any text as an address" },
  "security/open-path": { title: "read_file (path) takes any text as a path" },
  "security/open-path~format": { title: "write_page (page) takes any text as a path" },
  "security/open-path~described": { title: "write_page (page) takes any text as a path" },
  "security/open-path~answers": { title: "read_page (page) takes any text as a path" },
  "security/open-path~handed-out": handedOut,
  "security/open-path~climbs": handedOut,
  "security/unmarked-danger": {
    subject: "delete_note",
    title: "delete_note does not say whether it destroys anything",
  },
  "security/unmarked-danger~reads": {
    subject: "deleteNote",
    severity: "minor",
    title: "deleteNote says that it only reads, and its name says otherwise",
  },
};

describe("a server that is wrong in one way is told exactly that", () => {
  // One for all: of tests that run at the same time each would take the others' folders away.
  const laid = mkdtempSync(path.join(tmpdir(), "meanwhile-"));
  afterAll(() => rmSync(laid, { recursive: true }));

  /** What is judged by what the survey has read, without asking the server again. */
  const isRead = (name: string) => /-text$|open-address|open-path|danger/.test(checkOf(name));
  const read = security.filter(({ id }) => isRead(id));

  test.concurrent.each(breaksOf("security"))("%s", async (name) => {
    const wanted = [expected[name] ?? []].flat();
    const isOpen = wanted.some((one) => one.isOpen === true);
    const { url, close } = await startFixture({ breaks: [name], tokens: isOpen ? [] : tokens });
    const target = isOpen ? reached(url) : asFirst(url);
    const privateFolder = path.join(laid, encodeURIComponent(name));
    mkdirSync(privateFolder);
    const verdicts = isRead(name)
      ? await askAll(read, target, { facts: await surveyed(target), privateFolder })
      : await askAll(isOpen ? security : askedOf(name, security), target, { facts, privateFolder });
    // The file that nobody should hand out is gone again.
    expect(readdirSync(privateFolder)).toEqual([]);
    await close();
    const found = wanted.map(({ isOpen: _isOpen, ...one }) => ({ id: checkOf(name), ...one }));
    expect(findingsIn(verdicts)).toEqual([...(isOpen ? [open] : []), ...found]);
    const evidence = Object.values(verdicts).flatMap((verdict) =>
      verdict.outcome === "failed" ? verdict.findings.flatMap((fault) => fault.evidence) : [],
    );
    for (const { text } of evidence) {
      expect(text).not.toMatch(/[\p{Cc}\p{Cf}]|q8Zr1TkWm4|token-of-the/u);
      expect(text.length).toBeLessThanOrEqual(401);
    }
  });

  test("and every check has such a server, but the one about addresses", () => {
    expect(new Set([...breaksOf("security").map(checkOf), "security/plain-http"])).toEqual(
      new Set(security.map(({ id }) => id)),
    );
    expect(Object.keys(expected)).toEqual(breaksOf("security"));
  });
});

describe("over stdio, where the server is its user's own", () => {
  const leaks = security.filter(({ id }) => id === "security/error-leak");
  const over = { facts: undefined as unknown as Facts };
  beforeAll(() => {
    over.facts = { ...facts, transport: "stdio" };
  });

  test("a path in an error is no leak: the browser that is missing has to be named", async () => {
    expect(findingsIn(await askAll(leaks, piped("server.mjs", "--break", "security/error-leak~path"), over))).toEqual(
      [],
    );
  });

  test.each(["security/error-leak", "security/error-leak~answer"])("a stack is one: %s", async (name) => {
    expect(findingsIn(await askAll(leaks, piped("server.mjs", "--break", name), over))).toEqual([
      { id: "security/error-leak", ...expected[name] },
    ]);
  });

  test("a file of mode 0600 that is handed out is seen there, too, and without a folder to lay one in nothing is said", async () => {
    const paths = security.filter(({ id }) => id === "security/open-path");
    const target = piped("server.mjs", "--break", "security/open-path~handed-out");
    const own = await surveyed(target);
    const privateFolder = temporaryFolder();
    expect(
      findingsIn(await askAll(paths, target, { facts: own, privateFolder })).map(({ severity }) => severity),
    ).toEqual(["blocker", undefined]);
    expect(findingsIn(await askAll(paths, target, { facts: own })).map(({ severity }) => severity)).toEqual([
      undefined,
    ]);
    expect(readdirSync(privateFolder)).toEqual([]);
  });
});

test("a secret in the address that was given is one of the credentials, and is told as what it is", async () => {
  const { url, close } = await startFixture({ breaks: ["security/token-in-url"], tokens });
  const target = reached(`${url}?access_token=${tokens[0]}`);
  const asked = security.filter(({ id }) => /no-credentials|sign-in-hint|token-in-url/.test(id));
  const verdicts = await askAll(asked, target, { facts });
  const again = await askAll(asked, asFirst(url), { facts });
  await close();
  expect(findingsIn(verdicts)).toEqual([
    { id: "security/token-in-url", title: "The server wants its secret in the address" },
  ]);
  expect(JSON.stringify(again)).toContain(
    "a handshake to ?access_token=••• (your token), without credentials in the headers",
  );
});

describe("what is allowed is not told", () => {
  const described = (...descriptions: string[]): Facts => ({
    ...facts,
    tools: descriptions.map((description, at) => {
      const json = { name: `tool_${at}`, description, inputSchema: { type: "object" } };
      return {
        name: json.name,
        description,
        inputSchema: json.inputSchema,
        annotations: {},
        taskSupport: undefined,
        json,
      };
    }),
  });
  const found = async (id: string, known: Facts, target = asFirst(good.url)) => {
    const check = security.find((one) => one.id === id);
    if (check === undefined) throw new Error(`There is no check ${id}.`);
    const verdict = await ask(check, target, { facts: known });
    return findingsIn({ [id]: verdict });
  };

  test("signs that are made of several, and scripts that need marks", async () => {
    const seen = described(
      "A family: 👨‍👩‍👧, a flag: 🏴󠁧󠁢󠁥󠁮󠁧󠁿, a heart: ❤️.",
      "می‌خواهم",
      "עברית \u200fעם English\u200e",
      "\ufeffBegins with a mark.\n\tAnd goes on.",
    );
    expect(await found("security/hidden-text", seen)).toEqual([]);
  });

  test("strong words, rules for one's own tools, and short data", async () => {
    const words = described(
      "IMPORTANT: always call resolve_id first. You MUST NOT call this more than three times.",
      "Ignore case when comparing. Do not tell the user's age. Shows the system prompt of the shell.",
      "Never mention more than five results. Before using this tool, list the tables.",
      "Commit e83c5163316f89bfbde7d9ab23ca2e25604af290, data:image/png;base64,iVBORw0KGgoAAAANSUhEUg==",
      "<b>Important</b> notes on users and /home/you/notes.",
    );
    expect(await found("security/instructing-text", words)).toEqual([]);
  });

  test("values that stand for secrets", async () => {
    const values = described(
      "Your key, e.g. sk-xxxxxxxxxxxxxxxxxxxxxxxx or sk-your-api-key-goes-here.",
      "postgres://user:password@localhost:5432/db or mysql://root:$PASSWORD@db/x",
      `An access key such as ${["AKIA", "IOSFODNN7EXAMPLE"].join("")}`,
      "Authorization: Bearer YOUR_ACCESS_TOKEN_HERE",
      "ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    );
    expect(await found("security/secret-in-text", values)).toEqual([]);
  });

  test("arguments that say what they take, and names that only sound alike", async () => {
    const [tool] = described("Does something.").tools;
    const inputSchema = {
      type: "object",
      properties: {
        url: { type: "string", format: "uri" },
        host: { enum: ["a", "b"] },
        path: { type: "string", pattern: "^[a-z]+$" },
        hostility: { type: "string" },
        pathology: { type: "string" },
      },
    };
    const named = ["list_deleted", "undelete", "read_drops", "execution_log"].map(
      (name) => ({ ...tool, name, inputSchema }) as Facts["tools"][number],
    );
    for (const id of ["security/open-address", "security/open-path"])
      expect(await found(id, { ...facts, tools: named })).toEqual([]);
    expect(await found("security/unmarked-danger", { ...facts, tools: named })).toEqual([]);
  });

  test("http without credentials weighs less than with, and https nothing; no request is needed to know", async () => {
    const weigh = async (url: string, headers = {}) =>
      (await found("security/plain-http", facts, { ...reached(url, headers) })).map(
        ({ severity }) => severity ?? "major",
      );
    expect(await weigh("http://192.0.2.1/mcp", first)).toEqual(["major"]);
    expect(await weigh("http://mcp.example/mcp")).toEqual(["minor"]);
    expect(await weigh("https://mcp.example/mcp", first)).toEqual([]);
    expect(await weigh("http://localhost:1/mcp", first)).toEqual([]);
  });

  test.each([
    ["tasks/unknown-id", "security/foreign-task"],
    ["tasks/cancel", "security/foreign-task"],
    ["protocol/sessions~characters", "security/guessable-session"],
  ])("what is wrong for everybody (%s) is not told again by %s", async (name, id) => {
    const { url, close } = await startFixture({ breaks: [name], tokens });
    const told = await found(id, facts, asFirst(url));
    await close();
    expect(told).toEqual([]);
  });

  test("sign-in metadata under another name of this machine", async () => {
    const server = createServer((req, res) => {
      const home = `http://localhost:${(server.address() as AddressInfo).port}`;
      if (req.method === "GET") res.end(JSON.stringify({ resource: `${home}/mcp`, authorization_servers: [home] }));
      else
        res
          .writeHead(401, {
            "www-authenticate": `Bearer resource_metadata="${home}/.well-known/oauth-protected-resource/mcp"`,
          })
          .end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const verdict = await found(
      "security/sign-in-hint",
      facts,
      reached(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`),
    );
    await new Promise((resolve) => server.close(resolve));
    expect(verdict).toEqual([]);
  });

  test("a token holds back what the door does not", async () => {
    const { url, close } = await startFixture({ breaks: ["security/rebinding"], tokens });
    const verdict = await found("security/rebinding", facts, asFirst(url));
    await close();
    expect(verdict).toEqual([
      {
        id: "security/rebinding",
        severity: "minor",
        title: "A web page under another name is only held back by the token",
      },
    ]);
  });
});
