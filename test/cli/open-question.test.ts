/** Leaving the form of a question at a terminal leaves the question open. */
import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import { askInTerminal } from "../../src/cli/terminal.ts";
import { openAskingProject, startAskingTask } from "../helpers/asking-task.ts";
import { runCli, startCli } from "../helpers/cli.ts";
import { openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";

const screen = { columns: 80, rows: 24 };
const esc = "\x1b";
const ctrlC = "\x03";
const stillOpen =
  /! Not answered: the question stays open until \d{4}-\d\d-\d\d \d\d:\d\d UTC\n {2}Answer it: {2}meanwhile tasks answer (\S+).*\n {2}Decline it: the same with --decline\n/;

describe.each([
  ["Ctrl-C", ctrlC],
  ["Esc", esc],
])("%s in the form", (_key, key) => {
  test("of `tasks answer` leaves the question open, and says until when", async () => {
    const { place, taskId, ended } = await startAskingTask();
    const form = startCli(["tasks", "answer", taskId], { ...place, screen });
    await form.says(/What is your name\?/);
    form.stdin.write(key);
    expect(await form.exited).toBe(130);
    expect(stillOpen.exec(stripVTControlCharacters(form.stderr()))?.[1]).toBe(taskId.slice(0, 8));
    expect(form.stderr()).not.toContain("✓");
    expect((await runCli(["tasks", "answer", taskId, "name=Ada"], place)).stderr).toBe(
      "✓ Answered «What is your name?»\n",
    );
    expect(await ended()).toMatchObject({ code: 0, stdout: "greeting: Hello, Ada\n" });
  });

  test("of `--async` leaves the question open, and says until when", async () => {
    const { place, taskId, ended } = await startAskingTask();
    // Joins the live task.
    const form = startCli(["ask", "name", "--async"], { ...place, screen });
    await form.says(/What is your name\?/);
    form.stdin.write(key);
    expect(await form.exited).toBe(0);
    expect(stillOpen.exec(stripVTControlCharacters(form.stderr()))?.[1]).toBe(taskId.slice(0, 8));
    expect((await runCli(["tasks", "answer", taskId, "name=Ada"], place)).code).toBe(0);
    expect(await ended()).toMatchObject({ code: 0, stdout: "greeting: Hello, Ada\n" });
  });

  test("of a task of another server leaves the question open, and says until when", async () => {
    const { commands } = openAskingProject();
    const server = await openServer({ in: "http", commands });
    const target = ["--target", await server.url()];
    const place = { env: { MEANWHILE_HOME: server.home } };
    const id = (await runCli(["call", await server.url(), "ask_name", "--detach", "--quiet"], place)).stdout.trim();
    for (const words of [
      ["tasks", "answer", id, ...target],
      ["tasks", "watch", id, ...target],
    ]) {
      const form = startCli(words, { ...place, screen });
      await form.says(/What is your name\?/);
      form.stdin.write(key);
      expect(await form.exited).toBe(words[1] === "answer" ? 130 : 0);
      expect(stillOpen.exec(stripVTControlCharacters(form.stderr()))?.[1]).toBe(id);
    }
    expect((await runCli(["tasks", "answer", id, "name=Ada", ...target], place)).code).toBe(0);
  });
});

test.each([
  ["Esc", esc],
  ["Ctrl-C", ctrlC],
])("%s with the cursor on No leaves No on the screen", async (_key, key) => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  let drawn = "";
  output.on("data", (part) => (drawn += String(part)));
  const schema = { type: "object", properties: { send: { type: "boolean", default: false } }, required: ["send"] };
  const answer = askInTerminal({ message: "Send it?", isConfirmation: false, schema }, { prompt: { input, output } });
  await waitFor(() => drawn.includes("● No"));
  input.write(key);
  expect(await answer).toEqual({ action: "cancel" });
  const left = stripVTControlCharacters(drawn.slice(drawn.lastIndexOf("■")));
  expect(left).toMatch(/^■ {2}Send it\?\s+│ {2}No\s/);
});

test("--decline beside an answer is refused, and the question stays open", async () => {
  const { place, taskId, ended } = await startAskingTask();
  const refused = await runCli(["tasks", "answer", taskId, "name=Ada", "--decline"], place);
  expect(refused).toMatchObject({
    code: 2,
    stderr: "✗ --decline and name=Ada exclude each other: decline, or answer.\n",
  });
  expect((await runCli(["tasks", "answer", taskId, "name=Ada"], place)).code).toBe(0);
  expect(await ended()).toMatchObject({ code: 0, stdout: "greeting: Hello, Ada\n" });
});

test("--decline declines the question, and the task fails", async () => {
  const { place, taskId, ended } = await startAskingTask();
  const declined = await runCli(["tasks", "answer", taskId, "--decline"], place);
  expect(declined).toMatchObject({ code: 0, stderr: "✓ Declined «What is your name?»\n" });
  expect(await ended()).toMatchObject({ code: 1, stderr: expect.stringContaining("was declined") });
});

test.each([
  ["Enter", "\r"],
  ["a second Ctrl-C", ctrlC],
])("%s in the menu of Ctrl-C keeps the task running, and the terminal says so", async (_key, key) => {
  const { place } = openAskingProject();
  const work = startCli(["wait", "long", "--async"], { ...place, screen });
  await work.says(/Page 1 of 4/);
  work.signal("SIGINT");
  await work.says(/Leave how\?[\s\S]*● keep it running[\s\S]*○ stay[\s\S]*○ cancel the task/);
  work.stdin.write(key);
  expect(await work.exited).toBe(0);
  const id = /It keeps running: meanwhile tasks watch (\S+)/.exec(work.stderr())?.[1] ?? "";
  expect((await runCli(["tasks", "show", id], place)).stdout).toContain("status: working");
  expect((await runCli(["tasks", "cancel", id], place)).code).toBe(0);
  await waitFor(async () => (await runCli(["tasks", "show", id], place)).stdout.includes("status: cancelled"));
});
