import { accessSync, constants } from "node:fs";
import path from "node:path";
import { childEnvironment } from "./child-environment.ts";
import { type System, system } from "./system.ts";

/** Opens a page in the browser of whoever sits here; false when that did not begin. No shell sees the address. */
export type OpenPage = (url: URL) => Promise<boolean>;

type Environment = Readonly<Record<string, string | undefined>>;

/** How pages are opened here; undefined where nobody would see them: without a screen, or from afar. */
export function pageOpener(
  env: Environment = process.env,
  platform: System["platform"] = system.platform,
): OpenPage | undefined {
  const words = openerOf(env, platform);
  return words === undefined ? undefined : async (url) => await open(words, url);
}

function openerOf(env: Environment, platform: System["platform"]): readonly [string, ...string[]] | undefined {
  const isAfar = (env.SSH_CONNECTION ?? "") !== "";
  if (platform === "darwin") return isAfar ? undefined : ["/usr/bin/open"];
  if (platform === "win32") {
    const folder = `${env.SystemRoot ?? "C:\\Windows"}\\System32`;
    return isAfar ? undefined : [`${folder}\\rundll32.exe`, "url.dll,FileProtocolHandler"];
  }
  const hasScreen = (env.DISPLAY ?? "") !== "" || (env.WAYLAND_DISPLAY ?? "") !== "";
  const program = hasScreen ? find("xdg-open", env.PATH ?? "") : undefined;
  return program === undefined ? undefined : [program];
}

function find(name: string, folders: string): string | undefined {
  const files = folders
    .split(path.delimiter)
    .flatMap((folder) => (path.isAbsolute(folder) ? path.join(folder, name) : []));
  return files.find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function open([program, ...words]: readonly [string, ...string[]], url: URL): Promise<boolean> {
  if (url.protocol !== "https:" && url.protocol !== "http:") return Promise.resolve(false);
  const { spawn } = process.getBuiltinModule("node:child_process");
  return new Promise((resolve) => {
    const options = { stdio: "ignore", detached: true, windowsHide: true, env: childEnvironment() } as const;
    const child = spawn(program, [...words, url.href], options);
    child.once("error", () => resolve(false));
    child.once("spawn", () => resolve(true));
    child.unref();
  });
}
