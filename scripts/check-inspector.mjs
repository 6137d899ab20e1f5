// Drives tasks of examples/everything to their end with the official Inspector, in both eras, over HTTP and stdio, and
// completes the arguments of its prompts: `npm run check:inspector`.
// One line a check; exits non-zero when one fails. The first run installs the Inspector that inspector/package.json
// pins.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "..");
const executable = path.join(root, "bin", "meanwhile.cjs");
const example = path.join(root, "examples", "everything");
const inspector = path.join(import.meta.dirname, "inspector");

const startLimitMs = 20_000;
const stopLimitMs = 5_000;
const commandLimitMs = 60_000;

/**
 * What is run. `argv` is given to `mcp-inspector`, or to `mcpdo` where there is a `connect`, which is run first and
 * gives the connection its era. A check with `isTask` must show a task id in its result, and mcpdo's tasks/get must
 * then find that task completed. One with `isListed` shows none, and mcpdo's tasks/list must have a failed task;
 * callers over HTTP cannot be told apart here, so they are given no list.
 *
 * `mcp-inspector --cli` has neither an option to ask for a task nor a method to look at one. On 2026-07-28 the server
 * decides, so its call becomes a task; on 2025-11-25 it asks for one only when the tool's taskSupport is "required", so
 * an optional one is answered inline.
 *
 * A check with `offers` completes an argument of a prompt, a command's or one made by hand, and must be given these
 * values first. Only mcpdo can: `--cli` has no method for it. Neither can send the other arguments along.
 */
function toChecks({ url, home }) {
  const http = { name: "HTTP", words: ["--transport", "http", "--", url] };
  const serve = [process.execPath, executable, "serve", "--no-bundled"];
  const stdio = {
    name: "stdio",
    words: ["--transport", "stdio", "--cwd", example, "-e", `MEANWHILE_HOME=${home}`, "--", ...serve],
  };
  const slow = {
    says: "x: computed for 2 s",
    argv: ["--method", "tools/call", "--tool-name", "slow_compute", "--tool-arg", "seconds=2", "label=x"],
  };
  const failing = { says: "This job always fails", argv: ["--method", "tools/call", "--tool-name", "failing_job"] };
  return [http, stdio].flatMap(({ name, words }) => {
    const cli = (era, { says, argv }, more) => ({
      argv: ["--cli", "--format", "json", "--protocol-era", era, ...argv, ...words],
      look: ["connect", "--era", era === "auto" ? "modern" : era, ...words],
      says,
      ...more,
    });
    const mcpdo = (era, says, argv, more) => ({
      connect: ["connect", "--era", era, ...words],
      argv,
      says,
      isTask: true,
      ...more,
    });
    return [
      { name: `--cli, 2026-07-28, ${name}`, ...cli("modern", slow, { isTask: true }) },
      { name: `--cli, era auto, ${name}`, ...cli("auto", slow, { isTask: true }) },
      { name: `--cli, 2025-11-25, ${name}, task optional: inline`, ...cli("legacy", slow, { isTask: false }) },
      {
        name: `--cli, 2025-11-25, ${name}, task required: failed`,
        ...cli("legacy", failing, { exitCode: 1, isListed: name === "stdio" }),
      },
      {
        name: `mcpdo, 2026-07-28, ${name}`,
        ...mcpdo("modern", slow.says, ["tools/call", "slow_compute", "seconds:=2", "label:=x"]),
      },
      {
        name: `mcpdo, 2025-11-25, ${name}`,
        ...mcpdo("legacy", slow.says, ["tools/call", "slow_compute", "seconds:=2", "label:=x", "--task"]),
      },
      {
        name: `mcpdo, 2026-07-28, ${name}, asked in between`,
        ...mcpdo("modern", "Deleted x.", ["tools/call", "confirm_delete", "filename:=x"], { answer: "confirm:=true" }),
      },
      {
        name: `mcpdo, 2025-11-25, ${name}, asked in between`,
        ...mcpdo("legacy", "Deleted x.", ["tools/call", "confirm_delete", "filename:=x", "--task"], {
          answer: "confirm:=true",
        }),
      },
      ...["modern", "legacy"].flatMap((era) => {
        const revision = era === "modern" ? "2026-07-28" : "2025-11-25";
        const connect = ["connect", "--era", era, ...words];
        return [
          {
            name: `mcpdo, ${revision}, ${name}, a command's argument`,
            connect,
            argv: toCompletion("slow_compute", "seconds", "5"),
            offers: ["5", "50"],
          },
          {
            name: `mcpdo, ${revision}, ${name}, an argument by hand`,
            connect,
            argv: toCompletion("test_prompt_with_arguments", "arg1", "part"),
            offers: ["party"],
          },
        ];
      }),
    ];
  });
}

/** The words that make mcpdo complete a prompt's argument. */
function toCompletion(prompt, argument, typed) {
  return [
    "prompts/complete",
    "--complete-ref-type",
    "ref/prompt",
    "--complete-ref",
    prompt,
    "--complete-arg-name",
    argument,
    "--complete-arg-value",
    typed,
  ];
}

/** Says what was seen; throws when it is not what the check expects. */
async function runCheck(check, run) {
  if (check.connect === undefined) return await runOneShot(check, run);
  return await withConnection(check.connect, run, async (mcpdo) => {
    let result = await mcpdo(check.argv);
    if (check.answer !== undefined) result = await mcpdo(["elicitation/respond", elicitationOf(result), check.answer]);
    if (check.offers !== undefined) return checkOffers(result, check.offers);
    checkText(result, check.says);
    return await checkTask(result, mcpdo);
  });
}

function checkOffers(completion, offers) {
  const first = completion.values?.slice(0, offers.length) ?? [];
  if (first.join() !== offers.join())
    throw new Error(`it should begin with ${offers.join(", ")}: ${JSON.stringify(completion)}`);
  return completion.values.join(", ");
}

async function runOneShot({ argv, look, says, isTask, isListed, exitCode = 0 }, run) {
  const printed = await run("mcp-inspector", argv, exitCode);
  if (exitCode !== 0) {
    if (printed.error?.message !== says)
      throw new Error(`the error should be ${JSON.stringify(says)}: ${JSON.stringify(printed)}`);
    // Without a task the tool is refused, in other words than its own.
    return isListed ? await withConnection(look, run, checkFailed) : "its own error";
  }
  const { result } = printed;
  checkText(result, says);
  if (isTask) return await withConnection(look, run, (mcpdo) => checkTask(result, mcpdo));
  if (taskIdOf(result) !== undefined) throw new Error(`it was a task: ${JSON.stringify(result)}`);
  return "no task";
}

/** Lends a connection of mcpdo's daemon, and closes it again. */
async function withConnection(connect, run, use) {
  const mcpdo = (words) => run("mcpdo", ["--format", "json", "--connection", "check", ...words]);
  const { protocolEra } = await mcpdo(connect);
  try {
    const era = connect[connect.indexOf("--era") + 1];
    if (protocolEra !== era) throw new Error(`the era is ${protocolEra}, not ${era}`);
    return await use(mcpdo);
  } finally {
    await mcpdo(["disconnect"]);
  }
}

function elicitationOf({ elicitationPending }) {
  if (elicitationPending?.message !== "Delete x?")
    throw new Error(`nobody was asked: ${JSON.stringify(elicitationPending)}`);
  return elicitationPending.elicitationId;
}

function checkText({ content, isError }, says) {
  if (isError === true || content?.[0]?.text !== says)
    throw new Error(`the text should be ${JSON.stringify(says)}: ${JSON.stringify({ content, isError })}`);
}

/** The Inspector itself must find the task that the result names. */
async function checkTask(result, mcpdo) {
  const taskId = taskIdOf(result);
  if (taskId === undefined) throw new Error(`the result names no task: ${JSON.stringify(result)}`);
  const { task } = await mcpdo(["tasks/get", taskId]);
  if (task?.taskId !== taskId || task.status !== "completed")
    throw new Error(`tasks/get ${taskId} gave ${JSON.stringify(task)}`);
  return `task ${taskId} ${task.status}`;
}

async function checkFailed(mcpdo) {
  const { tasks } = await mcpdo(["tasks/list"]);
  const failed = tasks.find(({ status }) => status === "failed");
  if (failed === undefined) throw new Error(`tasks/list has none that failed: ${JSON.stringify(tasks)}`);
  return `task ${failed.taskId} failed`;
}

/** 2025-11-25 names the task in a field of the protocol's; 2026-07-28 forbids that, and our own remains. */
function taskIdOf({ _meta }) {
  return _meta?.["io.modelcontextprotocol/related-task"]?.taskId ?? _meta?.["meanwhile/call"]?.taskId;
}

/** Runs a program of the Inspector's to its end; gives what it printed, read as JSON. */
function runInspector(env, program, argv, exitCode = 0) {
  const words = [path.join(inspector, "node_modules", ".bin", program), ...argv];
  const child = spawn(process.execPath, words, {
    env,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: commandLimitMs,
    killSignal: "SIGKILL",
  });
  const printed = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"]) {
    child[name].setEncoding("utf8").on("data", (part) => {
      printed[name] += part;
    });
  }
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      const refuse = (why) =>
        reject(new Error(`${program} ${argv.join(" ")}\n${why}\n${printed.stdout}${printed.stderr}`));
      if (code !== exitCode) return refuse(`ended with ${code ?? signal}, not ${exitCode}`);
      try {
        resolve(JSON.parse(exitCode === 0 ? printed.stdout : printed.stderr));
      } catch {
        refuse("printed no JSON");
      }
    });
  });
}

/** Installs the Inspector at the version that inspector/package.json pins, unless it is there. */
function prepare() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major < 22 || (major === 22 && minor < 19))
    throw new Error(
      `The Inspector needs Node 22.19, this is ${process.versions.node}; \`npm run check:inspector\` brings it.`,
    );
  const { dependencies } = readManifest(inspector);
  const isInstalled = ([name, version]) =>
    readManifest(path.join(inspector, "node_modules", name))?.version === version;
  if (Object.entries(dependencies).every(isInstalled)) return;
  process.stderr.write("installing the Inspector\n");
  // Everything goes to stderr: stdout belongs to the checks.
  const { status, error } = spawnSync("npm", ["install", "--ignore-scripts", "--loglevel=error"], {
    cwd: inspector,
    stdio: ["ignore", 2, 2],
  });
  if (error) throw error;
  if (status !== 0) throw new Error(`npm install of the Inspector ended with ${status}.`);
}

function readManifest(folder) {
  const file = path.join(folder, "package.json");
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
}

function printedUrl(server) {
  let text = "";
  return new Promise((resolve, reject) => {
    const refuse = (why) => {
      clearTimeout(timer);
      reject(new Error(`The server ${why}:\n${text}`));
    };
    const timer = setTimeout(() => refuse(`printed no URL within ${startLimitMs / 1000} s`), startLimitMs);
    server.on("error", reject);
    server.on("close", (code) => refuse(`ended with code ${code}`));
    // Read on after the URL was found: a full pipe would stop the server.
    server.stderr.setEncoding("utf8").on("data", (part) => {
      text += part;
      const url = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(text)?.[0];
      if (url === undefined) return;
      clearTimeout(timer);
      resolve(url);
    });
  });
}

async function stop(server) {
  const isRunning = server.pid !== undefined && server.exitCode === null && server.signalCode === null;
  if (!isRunning) return;
  const ended = new Promise((resolve) => server.once("close", resolve));
  server.kill("SIGTERM");
  const timer = setTimeout(() => server.kill("SIGKILL"), stopLimitMs);
  await ended;
  clearTimeout(timer);
}

async function main() {
  prepare();
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ])
    process.once(signal, () => process.exit(code));
  const folder = mkdtempSync(path.join(tmpdir(), "meanwhile-inspector-"));
  // The user's own Inspector, its daemon and its secrets stay out of it.
  const own = {
    HOME: folder,
    MCP_STORAGE_DIR: path.join(folder, "storage"),
    MCP_INSPECTOR_DAEMON_DIR: path.join(folder, "daemon"),
  };
  const env = { ...process.env, ...own, MCP_INSPECTOR_SECRET_STORE: "file" };
  const server = spawn(
    process.execPath,
    [executable, "serve", "--http", "--port", "0", "--no-bundled", "--allow-anonymous"],
    {
      cwd: example,
      env: { ...process.env, MEANWHILE_HOME: path.join(folder, "http") },
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  // However we end: mcpdo's daemon outlives the commands that use it, and it has the stdio servers.
  process.once("exit", () => {
    server.kill("SIGKILL");
    spawnSync(process.execPath, [path.join(inspector, "node_modules", ".bin", "mcpdo"), "daemon", "stop"], {
      env,
      stdio: "ignore",
      timeout: stopLimitMs,
    });
    rmSync(folder, { recursive: true, force: true });
  });
  const url = await printedUrl(server);
  const run = (...words) => runInspector(env, ...words);
  for (const check of toChecks({ url, home: path.join(folder, "stdio") })) {
    try {
      process.stdout.write(`ok      ${check.name}: ${await runCheck(check, run)}\n`);
    } catch (error) {
      process.stdout.write(`FAILED  ${check.name}: ${error.message}\n`);
      process.exitCode = 1;
    }
  }
  await stop(server);
}

await main();
