import { runProgram } from "./cli/entries/run-program.ts";

await runProgram(process.argv.slice(2));
