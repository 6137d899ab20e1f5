// Who is compared, and how each is started. All offer the same tool: echo_text, { text } in, { text } out.
import { fileURLToPath } from "node:url";

const at = (file) => fileURLToPath(new URL(file, import.meta.url));
const program = at("../bin/meanwhile.cjs");
const commands = ["--no-bundled", "--commands", at("commands")];
const peer = (file) => ({ stdio: [at(file)], http: [at(file), "--http"], echoed: (structured) => structured.text });

export const servers = [
  { name: "SDK v1", ...peer("servers/sdk-v1.mjs"), revisions: ["2025-11-25"] },
  { name: "SDK v2", ...peer("servers/sdk-v2.mjs"), revisions: ["2026-07-28"] },
  { name: "fastmcp", ...peer("servers/fastmcp.mjs"), revisions: ["2025-11-25"] },
  {
    name: "Meanwhile",
    stdio: [program, "serve", "--in-process", ...commands],
    http: [program, "serve", "--http", "--port", "0", "--allow-anonymous", ...commands],
    // Its answers come in the envelope { success, data, messages }, as every command's do.
    echoed: (structured) => structured.data?.text,
    revisions: ["2025-11-25", "2026-07-28"],
  },
];

/** Programs that start, print and end; `expected` is part of what they print. */
export const programs = {
  node: { words: ["-e", "0"], expected: "" },
  help: { words: [program, "--help"], expected: "Usage: meanwhile <command>" },
  commandHelp: { words: [program, "echo", "text", "--help"], expected: "meanwhile echo text" },
};
