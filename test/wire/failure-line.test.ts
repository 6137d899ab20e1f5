import { expect, test } from "vitest";
import { failureLine } from "../../src/wire/failure-line.ts";

const printed: Readonly<Record<string, readonly [text: string, line: string]>> = {
  "an error that Node does not catch": [
    `/srv/server.js:1
throw new Error("DB_URL is not set");
^

Error: DB_URL is not set
    at Object.<anonymous> (/srv/server.js:1:7)
    at Module._compile (node:internal/modules/cjs/loader:1730:14) {
  code: 'NO_URL'
}

Node.js v24.15.0
`,
    "Error: DB_URL is not set",
  ],
  "a package that Node does not find": [
    `node:internal/modules/package_json_reader:314
  throw new ERR_MODULE_NOT_FOUND(packageName, fileURLToPath(base), null);
        ^

Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/server.mjs
    at Object.getPackageJSONURL (node:internal/modules/package_json_reader:314:9) {
  code: 'ERR_MODULE_NOT_FOUND'
}

Node.js v24.15.0`,
    "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/server.mjs",
  ],
  "a text that is thrown": [
    `node:internal/process/execution:118
            throw "no database"
            ^
no database
(Use \`node --trace-uncaught ...\` to show where the exception was thrown)

Node.js v24.15.0
`,
    "no database",
  ],
  "an exception of Python": [
    `Traceback (most recent call last):
  File "/srv/server.py", line 1, in <module>
    import mcp
ModuleNotFoundError: No module named 'mcp'
`,
    "ModuleNotFoundError: No module named 'mcp'",
  ],
  "the cause of an exception of Java": [
    `Exception in thread "main" java.lang.IllegalStateException: start failed
\tat Server.main(Server.java:3)
Caused by: java.io.FileNotFoundException: config.yaml
\t... 1 more
`,
    "Caused by: java.io.FileNotFoundException: config.yaml",
  ],
  "a panic of Go": [
    "panic: DB_URL is not set\n\ngoroutine 1 [running]:\nmain.main()\n\t/srv/main.go:4 +0x2c\nexit status 2\n",
    "panic: DB_URL is not set",
  ],
  "a package that npm does not find": [
    `npm error code E404
npm error 404 Not Found - GET https://registry.example.org/no-such-server
npm error 404  'no-such-server@*' is not in this registry.
npm error A complete log of this run can be found in: /home/user/.npm/_logs/debug-0.log
`,
    "npm error 404 Not Found - GET https://registry.example.org/no-such-server",
  ],
  "a refusal of a tool's own": [
    "error: missing argument <folder>\nUsage: server <folder>\n",
    "error: missing argument <folder>",
  ],
  "a plain sentence before another": ["Missing API key: set ACME_KEY.\nBye.\n", "Missing API key: set ACME_KEY."],
  colours: ["\x1b[31mError:\x1b[39m no database\n\x1b[2mNode.js v24.15.0\x1b[22m\n", "Error: no database"],
  "plain lines": ["Reading settings\nIt has no config.\n", "It has no config."],
  "nothing but a version": ["\nNode.js v24.15.0\n", "Node.js v24.15.0"],
  nothing: ["\n", ""],
};

test.each(Object.entries(printed))("of %s the line is found that says why", (_, [text, line]) => {
  expect(failureLine(text)).toBe(line);
});
