// Who is compared, and how each is started. All offer the same tool: echo_text, { text } in, { text } out.
import path from "node:path";
import { fileURLToPath } from "node:url";

const at = (file) => fileURLToPath(new URL(file, import.meta.url));
const root = at("..");
const peer = (file) => ({ stdio: [at(file)], http: [at(file), "--http"], echoed: (structured) => structured.text });
/** Meanwhile's answers come in the envelope { success, data, messages }, as every command's do. */
const inEnvelope = (structured) => structured.data?.text;

/** Meanwhile as it is built in a checkout, and the folder whose commands it serves. */
export function createMeanwhile({ name = "Meanwhile", checkout = root, project }) {
  const words = [path.join(checkout, "bin/meanwhile.cjs"), "-C", project, "serve", "--no-bundled"];
  return {
    name,
    stdio: [...words, "--in-process"],
    http: [...words, "--http", "--port", "0", "--allow-anonymous"],
    echoed: inEnvelope,
    revisions: ["2025-11-25", "2026-07-28"],
  };
}

export const servers = [
  { name: "SDK v1", ...peer("servers/sdk-v1.mjs"), revisions: ["2025-11-25"] },
  { name: "SDK v2", ...peer("servers/sdk-v2.mjs"), revisions: ["2026-07-28"] },
  { name: "fastmcp", ...peer("servers/fastmcp.mjs"), revisions: ["2025-11-25"] },
  createMeanwhile({ project: at(".") }),
];

const plainly = (structured) => structured.text;
const wrapped = (file) => ({ stdio: [at(file), "--durable"], echoed: plainly });

/** Servers made with an SDK, as they are and with durable() around them; and two in Hono. */
export const embedded = {
  stdio: ["sdk-v1", "sdk-v2", "fastmcp"].map((base) => ({
    base,
    bare: { stdio: [at(`servers/${base}.mjs`)], echoed: plainly },
    durable: wrapped(`servers/${base}.mjs`),
  })),
  hono: {
    bare: { http: [at("servers/sdk-v2.mjs"), "--hono"], echoed: plainly },
    created: { http: [at("servers/created.mjs")], echoed: inEnvelope },
  },
};

/** No server of MCP: what HTTP and JSON alone cost on this Node. */
export const bareServer = { name: "bare Node", http: [at("servers/bare.mjs")], echoed: inEnvelope };

const program = path.join(root, "bin/meanwhile.cjs");

/** Programs that start, print and end; `expected` is part of what they print. */
export const programs = {
  node: { words: ["-e", "0"], expected: "" },
  help: { words: [program, "--help"], expected: "Usage: meanwhile <command>" },
  commandHelp: { words: [program, "echo", "text", "--help"], expected: "meanwhile echo text" },
};
