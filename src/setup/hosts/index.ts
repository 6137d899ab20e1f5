import type { SetupHost } from "../host.ts";
import { claudeCode } from "./claude-code.ts";
import { claudeDesktop } from "./claude-desktop.ts";
import { cline } from "./cline.ts";
import { codex } from "./codex.ts";
import { copilot } from "./copilot.ts";
import { cursor } from "./cursor.ts";
import { gemini } from "./gemini.ts";
import { opencode } from "./opencode.ts";
import { vscode } from "./vscode.ts";
import { windsurf } from "./windsurf.ts";
import { zed } from "./zed.ts";

/** Every host that setup knows. */
export const hosts: readonly SetupHost[] = [
  claudeCode,
  claudeDesktop,
  codex,
  cursor,
  vscode,
  gemini,
  opencode,
  copilot,
  cline,
  windsurf,
  zed,
];
