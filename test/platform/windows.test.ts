import { mkdirSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { readRefusal } from "../../src/system/access-list.ts";
import type { Programs } from "../../src/system/programs.ts";
import { createWindows } from "../../src/system/windows.ts";
import { temporaryFolder } from "../helpers/home.ts";

const me = "S-1-5-21-1004336348-1177238915-682003330-1001";
const other = "S-1-5-21-1004336348-1177238915-682003330-1002";
/** As a folder in a user's profile has it: the system, administrators and the user. */
const ownAccess = `O:${me}G:S-1-5-21-1004336348-1177238915-682003330-513D:(A;OICIID;FA;;;SY)(A;OICIID;FA;;;BA)(A;OICIID;FA;;;${me})`;
/** As a folder has it that an administrator has made in C:\. */
const rootAccess =
  "O:BAG:S-1-5-21-1004336348-1177238915-682003330-513D:AI(A;OICIID;FA;;;BA)(A;OICIID;FA;;;SY)(A;OICIID;0x1200a9;;;BU)(A;ID;0x1301bf;;;AU)(A;OICIIOID;SDGXGWGR;;;AU)";

/** A PowerShell that answers scripts; `asked` is what was run, decoded. */
function shellAnswering(answer: (script: string) => string): Programs & { readonly asked: string[] } {
  const asked: string[] = [];
  const ask = (program: string, words: readonly string[]) => {
    const script = words[0] === "-NoProfile" ? Buffer.from(words.at(-1) ?? "", "base64").toString("utf16le") : "";
    asked.push(script === "" ? [path.win32.basename(program), ...words].join(" ") : script);
    return answer(script);
  };
  return { asked, ask, askLater: async (program, words) => ask(program, words) };
}

test("Windows: whether a process began when it should have, as near as Node and the system agree", () => {
  const programs = shellAnswering((script) =>
    script === '(Get-Process -Id 4711).StartTime.ToUniversalTime().ToString("o")'
      ? "2026-11-16T08:01:12.3456789Z\r\n"
      : "",
  );
  const windows = createWindows(programs);
  expect(windows.beganAt(4711, "2026-11-16T08:01:12.401Z")).toBe(true);
  expect(windows.beganAt(4711, "2026-11-16T07:59:00.000Z")).toBe(false);
  expect(windows.beganAt(4712, "2026-11-16T08:01:12.401Z")).toBeUndefined();
  expect(programs.asked).toHaveLength(3);
  windows.beganAt(4711, "2026-11-16T08:01:12.401Z");
  expect(programs.asked, "asked once").toHaveLength(3);
  expect(windows.ownStart()).toBe(new Date(performance.timeOrigin).toISOString());
});

test("Windows: how much memory a process holds, and nothing about one that is gone", async () => {
  const windows = createWindows(
    shellAnswering((script) => (script === "(Get-Process -Id 4711).WorkingSet64" ? "53641216\r\n" : "")),
  );
  expect(await windows.memoryOf(4711)).toBe(53_641_216);
  expect(await windows.memoryOf(4712)).toBeUndefined();
});

test("Windows: a process is ended with the tree below it; one that is gone is no error", () => {
  const programs = shellAnswering(() => "");
  createWindows(programs).killGroup(2 ** 30);
  expect(programs.asked).toEqual([`taskkill.exe /pid ${2 ** 30} /t /f`]);
});

test("Windows: a daemon listens on a pipe whose name nobody can guess, and each side has to prove itself", async () => {
  const windows = createWindows(shellAnswering(() => ""));
  const name = windows.placeSocket("C:\\Users\\ada\\.meanwhile\\run\\k.sock", undefined);
  expect(name).toMatch(/^\\\\\.\\pipe\\meanwhile-[0-9a-f]{32}$/);
  expect(windows.placeSocket("C:\\Users\\ada\\.meanwhile\\run\\k.sock", name)).not.toBe(name);
  expect(windows.fitsSocket("C:\\h\\mcp.sock"), "a file is no socket there").toBe(false);
  expect(windows.refusalOfSocket(name)).toBeUndefined();
  expect(windows.refusalOfSocket("\\\\elsewhere\\pipe\\meanwhile-1")).toBe(
    "\\\\elsewhere\\pipe\\meanwhile-1 is no pipe of ours",
  );
  expect(windows.areSocketsSeen).toBe(true);
  const socket = windows.ownSocket(name);
  expect(socket.isThere()).toBe(false);
  const listened: string[] = [];
  await socket.open(async (at) => void listened.push(at));
  expect([listened, socket.isThere()]).toEqual([[name], true]);
  socket.remove();
  expect(socket.isThere()).toBe(false);
});

/** What is said of one file whose access is this. */
function refusalBy(access: string, mayBeShared = false): string | undefined {
  const file = temporaryFolder();
  const programs = shellAnswering(() => `${me}\r\n=${access}\r\n`);
  const refusal = createWindows(programs).refusalOf([{ file, isRootTrusted: false, mayBeShared, cure: "move it" }]);
  return refusal?.replace(file, "it");
}

test.each([
  ["the user's own", ownAccess],
  ["an administrator's, which others may only read", "O:BAG:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;0x1200a9;;;BU)(A;;FR;;;WD)"],
  ["the user's, with rights for whoever makes something there", `O:${me}G:SYD:(A;OICIIO;GA;;;CO)(A;;FA;;;OW)`],
  ["the user's, where somebody is refused", `O:${me}G:SYD:(D;;FA;;;BU)(A;;FA;;;${me})`],
])("Windows: a file is taken that is %s", (_, access) => {
  expect(refusalBy(access)).toBeUndefined();
});

test.each([
  ["that another user owns", `O:${other}G:SYD:(A;;FA;;;${me})`, `it belongs to another user (${other}, you are ${me})`],
  ["as it is made in C:\\", rootAccess, "it may be written by others (AU)"],
  ["that everybody may write by name", `O:${me}G:SYD:(A;;FA;;;WD)`, "it may be written by others (WD)"],
  [
    "that another user may write by bits",
    `O:${me}G:SYD:(A;;0x116;;;${other})`,
    `it may be written by others (${other})`,
  ],
  ["whose rights others may change", `O:${me}G:SYD:(A;;RCWD;;;BU)`, "it may be written by others (BU)"],
  ["in which others may delete", `O:${me}G:SYD:(A;;DT;;;BU)`, "it may be written by others (BU)"],
  ["that PowerShell says nothing about", "", "Nobody says whose it is (Get-Acl did not answer)"],
  [
    "some of whose rights depend on a condition, whatever comes after it",
    `O:${me}G:SYD:AI(XA;;FR;;;WD;(@User.Title=="PM"))(A;;FA;;;WD)`,
    "it may be written by others (everybody)",
  ],
  ["that has no list at all", `O:${me}G:SYD:NO_ACCESS_CONTROL`, "it may be written by others (everybody)"],
])("Windows: a file is refused %s", (_, access, said) => {
  expect(refusalBy(access)).toMatch(
    new RegExp(`^${said.replace(/[()\\]/g, "\\$&")}, so nothing in it was read; .*move it\\.$`),
  );
});

test("Windows: what the machine's own administrator has made is taken where that is us", () => {
  const rule = { file: "it", isRootTrusted: false, cure: "move it" };
  const by = (own: string) => readRefusal([rule], `${own}\r\n=O:LAG:SYD:(A;;FA;;;LA)\r\n`);
  expect(by("S-1-5-21-1-2-3-500")).toBeUndefined();
  expect(by(me)).toContain("belongs to another user (LA");
});

test("Windows: only whose it is counts for what earlier versions have made", () => {
  expect(refusalBy(rootAccess, true)).toBeUndefined();
  expect(refusalBy(`O:${other}G:SYD:(A;;FA;;;${me})`, true)).toContain("belongs to another user");
});

test("Windows: many files are asked about at once, with the quotes in their names, once; those in the user's profile never", () => {
  const folder = path.join(temporaryFolder(), "it's ‘here’");
  mkdirSync(folder);
  const rules = [folder, path.dirname(folder), path.join(folder, "absent")].map((file) => ({
    file,
    isRootTrusted: true,
    cure: "",
  }));
  const programs = shellAnswering(() => `${me}\r\n=${ownAccess}\r\n=${ownAccess}\r\n`);
  const windows = createWindows(programs);
  for (let count = 0; count < 3; count++) expect(windows.refusalOf(rules)).toBeUndefined();
  expect(programs.asked).toEqual([
    `[Security.Principal.WindowsIdentity]::GetCurrent().User.Value
foreach ($file in '${path.dirname(folder)}/it''s ‘‘here’’','${path.dirname(folder)}') { "=" + (Get-Acl -LiteralPath $file).Sddl }`,
  ]);
  vi.stubEnv("HOME", path.dirname(path.dirname(folder)));
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(createWindows(programs).refusalOf(rules)).toBeUndefined();
  expect(programs.asked).toHaveLength(1);
});
