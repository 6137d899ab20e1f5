// Prepares a checkout: what `npm start` and `npm test` need, and nothing when it is there already.
import { spawnSync } from "node:child_process";

run("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error"]);
run("npm", ["run", "build", "--silent", "--", "--log-level=error"]);

function run(program, words) {
  // Everything goes to stderr: stdout belongs to what is started afterwards.
  const { status, error } = spawnSync(program, words, { stdio: ["ignore", 2, 2] });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}
