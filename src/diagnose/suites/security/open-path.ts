import type { Check } from "../../check.ts";
import { judgeArguments } from "./unrestricted.ts";

const pathNames =
  /^(?:(?:input|output|source|target|dest|destination|src|dst|root|base|working|local|absolute|relative)_?)?(?:path|paths|file_?path|file_?paths|filename|file_?name|directory|dir|folder)$/i;

export const check: Check = {
  id: "security/open-path",
  question: "Do arguments that are paths say which paths they take?",
  severity: "info",
  why: "A tool that opens whatever path it is given reads and writes outside the folder it was made for: ../ , links and absolute paths lead there.",
  remedy: "Narrow the argument with a pattern, and in the tool resolve the path, links included, and refuse what is not below the folder that is served.",
  source: "MCP 2026-07-28, Resources: Security Considerations; CVE-2025-53109, CVE-2025-53110",
  isStatic: true,
  run: async (probe) => judgeArguments(probe, pathNames, "a path"),
};
