import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";

/**
 * Makes every start of a child process fail in the in-process tier, from the code under test too. Worker threads are
 * allowed.
 */
for (const name of ["spawn", "spawnSync", "fork", "exec", "execSync", "execFile", "execFileSync"] as const)
  Object.assign(childProcess, {
    [name](program: unknown) {
      throw new Error(
        `A test of the in-process tier started ${String(program)}. Move the test to test/system, or run the code here.`,
      );
    },
  });
syncBuiltinESMExports();
(globalThis as { processesAreForbidden?: boolean }).processesAreForbidden = true;
