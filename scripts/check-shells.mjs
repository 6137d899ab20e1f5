// Types at the prompt of real shells, presses Tab and Enter, and looks which words the command then gets.
//   npm run check:shells              bash, zsh and fish, those that are installed
//   node scripts/check-shells.mjs zsh
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const executable = path.resolve(import.meta.dirname, "../bin/meanwhile.cjs");
/** Gives a program a terminal of its own; part of util-linux. */
const pseudoTerminal = "script";
const lineLimitMs = 30_000;

const shells = {
  bash: { start: "bash --noprofile --norc -i", install: 'eval "$(meanwhile completion bash)"' },
  zsh: { start: "zsh -f -i", install: 'eval "$(meanwhile completion zsh)"', showsDescriptions: true },
  fish: { start: "fish --no-config -i", install: "meanwhile completion fish | source", showsDescriptions: true },
};

const render = `import { defineCommand } from "meanwhile";
import { z } from "zod";
console.log("what a file says when it is loaded is not heard");
export default defineCommand({
  summary: "Render a report",
  input: z.object({
    format: z.enum(["pdf", "docx"]).default("pdf"),
    title: z.enum(["plain", "two words", "it's", 'say "hi"', "a:b", "c=d", "$HOME", "-dash", "über"]).default("plain"),
    out: z.string().optional(),
  }),
  run: ({ format }) => ({ format }),
});
`;

/** What is typed before Tab, and the words that come of it. */
function toChecks(taskId) {
  const report = "meanwhile report render";
  const check = (line, ...words) => ({ line, words });
  const title = (typed, value) => check(`${report} --title ${typed}`, "report", "render", "--title", value);
  return {
    "a verb": check("meanwhile tok", "token"),
    "a domain": check("meanwhile rep", "report"),
    "a command": check("meanwhile report ren", "report", "render"),
    "a flag": check(`${report} --fo`, "report", "render", "--format"),
    "an enum value": check(`${report} --format d`, "report", "render", "--format", "docx"),
    "an enum value behind =": check(`${report} --format=d`, "report", "render", "--format=docx"),
    "a task id": check(`meanwhile tasks show ${taskId.slice(0, 12)}`, "tasks", "show", taskId),
    "a file": check(`${report} --out my`, "report", "render", "--out", "my file.txt"),
    "a file behind =": check(`${report} --out=my`, "report", "render", "--out=my file.txt"),
    "a folder": check("meanwhile --commands com", "--commands", "commands"),
    "a value with a blank": title("tw", "two words"),
    "a value in quotes": title('"tw', "two words"),
    "a value in single quotes": title("'tw", "two words"),
    "a value with quotes": title("say", 'say "hi"'),
    "a value with quotes, in quotes": title('"say', 'say "hi"'),
    "an apostrophe in single quotes": title("'it", "it's"),
    "a value with a colon": title("a:", "a:b"),
    "a value with =": title("c=", "c=d"),
    "a value with a dollar": title("\\$", "$HOME"),
    "a value with a dash": title("-d", "-dash"),
    "a value of other letters": title("üb", "über"),
  };
}

/** A project with a task, and a `meanwhile` that writes down how it was called. */
function prepare() {
  const folder = mkdtempSync(path.join(tmpdir(), "meanwhile-shells-"));
  const typed = path.join(folder, "typed");
  const cwd = path.join(folder, "project");
  mkdirSync(path.join(folder, "bin"));
  mkdirSync(path.join(cwd, "commands/report"), { recursive: true });
  writeFileSync(path.join(cwd, "commands/report/render.ts"), render);
  writeFileSync(path.join(cwd, "my file.txt"), "");
  const wrapper = path.join(folder, "bin/meanwhile");
  writeFileSync(
    wrapper,
    `#!/bin/sh
case "$1" in _complete|completion) exec "${process.execPath}" "${executable}" "$@" ;; esac
printf '%s\\0' "$@" >"${typed}.part" && mv "${typed}.part" "${typed}"
`,
  );
  chmodSync(wrapper, 0o755);
  const own = {
    HOME: folder,
    ZDOTDIR: folder,
    XDG_CONFIG_HOME: folder,
    XDG_DATA_HOME: folder,
    MEANWHILE_HOME: path.join(folder, "home"),
  };
  // A UTF-8 locale that every glibc has.
  const env = {
    ...process.env,
    ...own,
    LC_ALL: "C.UTF-8",
    TERM: "xterm",
    PATH: `${path.join(folder, "bin")}:${process.env.PATH}`,
  };
  const meanwhile = (...words) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [executable, ...words], {
      cwd,
      env,
      encoding: "utf8",
      timeout: lineLimitMs,
    });
    if (status !== 0) throw new Error(`meanwhile ${words.join(" ")} ended with ${status}: ${stderr}`);
    return stdout.trim();
  };
  const taskIds = [
    meanwhile("report", "render", "--detach"),
    meanwhile("report", "render", "--detach", "--format", "docx"),
  ];
  for (const taskId of taskIds) meanwhile("tasks", "result", taskId, "--wait");
  return { folder, cwd, env, typed, taskIds };
}

/** A shell at a terminal of its own. */
class Prompt {
  #child;
  #screen = "";

  constructor({ start }, { cwd, env }) {
    this.#child = spawn(pseudoTerminal, ["-qfc", start, "/dev/null"], { cwd, env, stdio: ["pipe", "pipe", "inherit"] });
    this.#child.stdout.setEncoding("utf8").on("data", (text) => {
      this.#screen += text;
    });
    this.#child.stdin.on("error", () => {});
  }

  type(text) {
    this.#screen = "";
    this.#child.stdin.write(text);
  }

  async until(look, what) {
    for (const end = performance.now() + lineLimitMs; performance.now() < end; ) {
      if (look(this.#screen)) return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error(`${what}; the screen shows ${JSON.stringify(this.#screen)}`);
  }

  async close() {
    const ended = new Promise((resolve) => this.#child.once("close", resolve));
    this.#child.kill("SIGKILL");
    await ended;
  }
}

async function checkShell(name, stage) {
  const shell = shells[name];
  const prompt = new Prompt(shell, stage);
  const { typed, taskIds } = stage;
  const ready = `${typed}.${name}`;
  let failed = 0;
  const say = async (what, check) => {
    try {
      process.stdout.write(`ok      ${name}: ${what}: ${await check()}\n`);
    } catch (error) {
      failed += 1;
      process.stdout.write(`FAILED  ${name}: ${what}: ${error.message}\n`);
    }
  };
  try {
    prompt.type(`${shell.install}\rtouch '${ready}'\r`);
    await prompt.until(() => existsSync(ready), "it never came up");
    for (const [what, { line, words }] of Object.entries(toChecks(taskIds[0]))) {
      await say(what, async () => {
        rmSync(typed, { force: true });
        prompt.type(`${line}\t\r`);
        await prompt.until(() => existsSync(typed), "nothing was called");
        // bash and fish leave a folder's last slash, zsh takes it away.
        const got = readFileSync(typed, "utf8")
          .split("\0")
          .slice(0, -1)
          .map((word) => word.replace(/\/$/, ""));
        if (JSON.stringify(got) !== JSON.stringify(words))
          throw new Error(`${line} became ${JSON.stringify(got)}, not ${JSON.stringify(words)}`);
        return `${line} → ${got.join(" ")}`;
      });
    }
    if (shell.showsDescriptions === true) {
      await say("the status of tasks", async () => {
        prompt.type("meanwhile tasks show \t");
        await prompt.until(
          (screen) => taskIds.every((taskId) => screen.includes(taskId)) && screen.includes("completed: report_render"),
          "it is not listed",
        );
        return "completed: report_render";
      });
    }
  } finally {
    await prompt.close();
  }
  return failed;
}

function isInstalled(program) {
  return spawnSync(program, ["--version"], { stdio: "ignore" }).error === undefined;
}

async function main(names) {
  const unknown = names.find((name) => !Object.hasOwn(shells, name));
  if (unknown !== undefined) throw new Error(`${unknown} is none of ${Object.keys(shells).join(", ")}.`);
  const missing = [pseudoTerminal, ...names].filter((name) => !isInstalled(name));
  for (const name of missing) process.stdout.write(`not run: ${name} is not installed\n`);
  const present = missing.includes(pseudoTerminal) ? [] : names.filter((name) => !missing.includes(name));
  if (present.length === 0) return;
  const stage = prepare();
  try {
    for (const name of present) if ((await checkShell(name, stage)) > 0) process.exitCode = 1;
  } finally {
    rmSync(stage.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

await main(process.argv.length > 2 ? process.argv.slice(2) : Object.keys(shells));
