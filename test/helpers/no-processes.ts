import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import type { StartProgram } from "./programs.ts";

/**
 * Makes every start of a child process fail in the in-process tier, from the code under test too, except those of
 * programs that run in the test's process (programs.ts). Worker threads are allowed.
 */
for (const name of ["spawn", "spawnSync", "fork", "exec", "execSync", "execFile", "execFileSync"] as const)
  Object.assign(childProcess, {
    [name](...words: unknown[]) {
      const started = (globalThis as { startProgram?: StartProgram }).startProgram?.(name, words);
      if (started !== undefined) return started;
      throw new Error(
        `A test of the in-process tier started ${String(words[0])}. Move the test to test/system, or run the code here.`,
      );
    },
  });
syncBuiltinESMExports();
(globalThis as { processesAreForbidden?: boolean }).processesAreForbidden = true;
