import { expect, test } from "vitest";
import { httpBanner } from "../../../src/cli/screens/http-banner.ts";
import { defineCommand } from "../../../src/command/command.ts";
import { openTerminalHere } from "../../helpers/terminal.ts";

const facts = {
  ...{ url: "http://127.0.0.1:7337/mcp", name: "files", version: "1.0.0", home: "/h", program: "meanwhile" },
  ...{ tokenFile: "/h/token", token: "t", allowAnonymous: false, issuers: [] },
};
const entry = (toolName: string) => ({
  ...{ toolName, path: [toolName], file: "" },
  command: defineCommand({ summary: "Reads", effects: "read", run: () => ({}) }),
});
const banner = (more: object) => httpBanner({ ...facts, entries: [], ...more }, openTerminalHere().terminal);

test("a name that is more than a word never stands in a line for a shell", () => {
  const spiteful = "x'; rm -rf ~; '";
  const said = banner({ entries: [entry(spiteful), entry("report_list")] });
  expect(said).not.toContain("rm -rf");
  expect(said).toContain(`"params": { "name": "report_list" }`);
  expect(banner({ entries: [entry(spiteful)] })).toContain(`"method": "tools/list"`);
});

test("what is wrapped is named, also before it is known, and who lets strangers in is told to what", () => {
  const said = banner({ wrapped: ["files", "git"], allowAnonymous: true });
  expect(said).toContain("stands in front of files, git at http://127.0.0.1:7337/mcp");
  expect(said).toContain("Strangers are let in, to all that files, git can do;");
  expect(said).not.toContain("A first command");
});

test("names the issuers at which users sign in", () => {
  expect(banner({ issuers: ["https://one.example", "https://two.example"] })).toContain(
    "Users sign in at https://one.example or https://two.example, other clients need a key (meanwhile keys add <name>); a client with this header is you:",
  );
});

test("says how other clients get a key", () => {
  expect(banner({ program: "npx meanwhile" })).toContain(
    "A client with this header is you; other clients need a key (npx meanwhile keys add <name>):",
  );
});

test("names no key for wrapped servers, which have none", () => {
  expect(banner({ wrapped: ["files"] })).toContain("A client with this header is you:");
});

test("names the options by which a key is added for the project that is served", () => {
  const options = ["--commands", "my tools", "--bundled"];
  expect(banner({ options })).toContain("a key (meanwhile --commands 'my tools' --bundled keys add <name>):");
});
