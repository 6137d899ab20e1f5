// The part of the launcher for Windows that is the same on every machine; `setup` writes it behind a line that sets
// `recorded`. It does what launcher.sh does elsewhere, and runs on any Node: the .cmd starts it with the first Node that
// it finds, and an entry with arguments that cannot pass a .cmd names it directly.
const { spawn } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");

const { env } = process;
const words = process.argv.slice(2);
const { name, title, variables } = recorded;
const range = readRange();

if (fs.existsSync(recorded.package)) startPackage();
else startWithNpx();

function startPackage() {
  const isRecorded = recorded.node === process.execPath || !fs.existsSync(recorded.node);
  const node = isRecorded ? findNode() : isInRange(recorded.nodeVersion) ? recorded.node : findNode();
  if (node === undefined) {
    const wanted = range.text === "" ? "Node.js" : `Node.js ${range.text}`;
    return startOriginal(
      `no ${wanted} was found on this machine, and ${recorded.node} is gone or does not fit`,
      `Install ${wanted}, then run: ${name} setup`,
    );
  }
  setVariables();
  if (node !== process.execPath) return run(node, [recorded.package, ...words]);
  process.argv[1] = recorded.package;
  require(recorded.package);
}

/** A copy in the cache of npx may be cleared at any time, and npx fetches it again. */
function startWithNpx() {
  const node = recorded.npx === undefined ? undefined : findNode();
  const npx = node === undefined ? "" : path.join(path.dirname(node), "node_modules", "npm", "bin", "npx-cli.js");
  if (!fs.existsSync(npx))
    return startOriginal(`${recorded.package} is gone`, `Install ${name} again, then run: ${name} setup`);
  setVariables();
  env.PATH = [path.dirname(node), env.PATH].filter(Boolean).join(path.delimiter);
  run(node, [npx, "-y", recorded.npx, ...words]);
}

/** Starts the command after `--` as it was, or says why the entry has none that may be started. */
function startOriginal(why, cure) {
  const dashes = words[0] === "wrap" ? words.indexOf("--") : -1;
  const original = dashes < 0 ? [] : words.slice(dashes + 1);
  if (original.length === 0) return end(`${name}: ${why}, so this server cannot start. ${cure}`);
  const program = path.basename(original[0]);
  if (words.slice(0, dashes).some((word) => /^--(?:allow|deny)(?:=|$)/.test(word)))
    return end(
      `${name}: ${why}. ${program} was not started without it, because the entry limits its tools with --allow or --deny. ${cure}`,
    );
  process.stderr.write(`${name}: ${why}, so ${program} runs without ${title}. ${cure}\n`);
  delete env[`${variables}ENTRY_STORE`];
  run(...toCommand(original));
}

function end(sentence) {
  process.stderr.write(`${sentence}\n`);
  process.exitCode = 70;
}

function run(program, args, options = {}) {
  const child = spawn(program, args, { stdio: "inherit", windowsHide: true, ...options });
  child.on("error", (error) => end(`${name}: ${program} could not be started: ${error.message}`));
  child.on("exit", (code, signal) => process.exit(signal === null ? code : 1));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
}

/** Only for the package, never for the original command: a variable that the entry or the host sets stays. */
function setVariables() {
  if (recorded.home !== undefined && !env[`${variables}HOME`]) env[`${variables}HOME`] = recorded.home;
  const store = env[`${variables}ENTRY_STORE`];
  if (store) env[`${variables}STORE`] = store;
  delete env[`${variables}ENTRY_STORE`];
}

/** The range of the package: ">=22.18", or ">=22.18 <27". */
function readRange() {
  let text = "";
  try {
    text = fs.readFileSync(recorded.rangeFile, "utf8").split(/\r?\n/)[0].trim();
  } catch {
    // Every Node fits.
  }
  const [, least = "0"] = />=(\S+)/.exec(text) || [];
  const [, below = "999"] = /(?:^|\s)<(?!=)(\S+)/.exec(text) || [];
  return { text, least: toNumber(least), below: toNumber(below) };
}

/** A version as one number: v24.1.0 is 24001000. */
function toNumber(version) {
  const [major = 0, minor = 0, patch = 0] = version.replace(/^v/, "").split(/[^\d]/).map(Number);
  return major * 1000000 + minor * 1000 + patch;
}

function isInRange(version) {
  const number = toNumber(version);
  return number >= range.least && number < range.below;
}

/** This Node where it was recorded and fits, else the newest installed one in the range. */
function findNode() {
  if (process.execPath === recorded.node && isInRange(process.version)) return process.execPath;
  const found = nodeFiles().flatMap((file) => {
    const version = file === process.execPath ? process.version : versionOf(file);
    return version !== undefined && isInRange(version) ? [{ file, number: toNumber(version) }] : [];
  });
  found.sort((a, b) => b.number - a.number);
  return found.length === 0 ? undefined : found[0].file;
}

/**
 * The Node executables in folders that only this user, administrators and the system may write, as Windows makes them:
 * below the profile and in Program Files.
 */
function nodeFiles() {
  const profile = env.USERPROFILE || env.HOME || "";
  const roaming = env.APPDATA || path.join(profile, "AppData", "Roaming");
  const local = env.LOCALAPPDATA || path.join(profile, "AppData", "Local");
  const programs = [env.ProgramFiles, env["ProgramFiles(x86)"]].filter(Boolean);
  // To a folder of another drive there is no relative way.
  const isBelow = (top, folder) => {
    const way = path.relative(top, folder);
    return !/^\.\.(?:[\\/]|$)/.test(way) && !path.isAbsolute(way);
  };
  const isOwn = (folder) =>
    path.isAbsolute(folder) && [profile, ...programs].some((top) => top !== "" && isBelow(top, folder));
  const onPath = (env.PATH || "").split(path.delimiter).filter((folder) => !/[\\/]shims$/i.test(folder));
  const folders = [
    ...onPath,
    ...programs.map((folder) => path.join(folder, "nodejs")),
    ...inside(env.NVM_HOME || path.join(roaming, "nvm")),
    ...inside(env.FNM_DIR || path.join(roaming, "fnm"), "node-versions").map((one) => path.join(one, "installation")),
    ...inside(env.VOLTA_HOME || path.join(local, "Volta"), "tools", "image", "node"),
  ];
  const files = folders.filter(isOwn).map((folder) => path.join(folder, "node.exe"));
  // What Volta puts on the PATH is a shim, which lies beside volta-shim.exe.
  const isShim = (file) => fs.existsSync(path.join(path.dirname(file), "volta-shim.exe"));
  return [...new Set([process.execPath, ...files.filter((file) => fs.existsSync(file) && !isShim(file))])];
}

function inside(...parts) {
  const folder = path.join(...parts);
  try {
    return fs.readdirSync(folder).map((entry) => path.join(folder, entry));
  } catch {
    return [];
  }
}

function versionOf(file) {
  try {
    const { execFileSync } = require("node:child_process");
    return execFileSync(file, ["--version"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return undefined;
  }
}

/** A command as Windows starts it: an .exe directly, and a .cmd such as npx by cmd.exe with every argument quoted. */
function toCommand([program, ...args]) {
  const file = process.platform === "win32" ? resolveProgram(program) : program;
  if (process.platform !== "win32" || /\.(?:exe|com)$/i.test(file)) return [file, args];
  const line = [escapeForCmd(file), ...args.map(quoteForCmd)].join(" ");
  return [env.ComSpec || "cmd.exe", ["/d", "/s", "/c", `"${line}"`], { windowsVerbatimArguments: true }];
}

function resolveProgram(program) {
  const endings = path.extname(program) === "" ? (env.PATHEXT || ".COM;.EXE;.BAT;.CMD").split(";") : [""];
  const folders = /[\\/]/.test(program) ? [""] : (env.PATH || "").split(path.delimiter);
  for (const folder of folders)
    for (const ending of endings) {
      const file = path.join(folder, `${program}${ending}`);
      if (fs.existsSync(file)) return file;
    }
  return program;
}

function escapeForCmd(text) {
  return text.replace(/[()\][%!^"`<>&|;, *?]/g, "^$&");
}

/** Escaped twice: cmd.exe reads its own line, and then the line of the .cmd that passes its arguments on. */
function quoteForCmd(word) {
  const quoted = `"${word.replace(/(\\*)"/g, '$1$1\\"').replace(/(\\*)$/, "$1$1")}"`;
  return escapeForCmd(escapeForCmd(quoted));
}
