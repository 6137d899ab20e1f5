// No MCP: hands on what it reads, to a child and back, and looks at nothing: node relay.mjs <command …>.
import { spawn } from "node:child_process";

const [command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
process.stdin.on("data", (chunk) => child.stdin.write(chunk));
child.stdout.on("data", (chunk) => process.stdout.write(chunk));
process.stdin.on("end", () => child.stdin.end());
child.on("close", () => process.exit(0));
