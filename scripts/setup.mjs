// Prepares a checkout: what `npm start` and `npm test` need, and nothing when it is there already.
import { spawnSync } from "node:child_process";

run(["install", "--no-audit", "--no-fund", "--loglevel=error"]);
run(["run", "build", "--silent", "--", "--log-level=error"]);

/** The npm that has started us, by its file: on Windows its name is that of a script, which only a shell can start. */
function run(words) {
  const npm = process.env.npm_execpath?.endsWith("npm-cli.js") ? process.env.npm_execpath : undefined;
  const [program, ...rest] = npm === undefined ? ["npm", ...words] : [process.execPath, npm, ...words];
  // Everything goes to stderr: stdout belongs to what is started afterwards.
  const { status, error } = spawnSync(program, rest, { stdio: ["ignore", 2, 2] });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}
