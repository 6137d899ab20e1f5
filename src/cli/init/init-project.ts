import path from "node:path";
import { Exit, type ExitCode, UsageError } from "../../errors.ts";
import type { Home } from "../../paths.ts";
import { packageVersion } from "../../project/project.ts";
import { quoteWord } from "../remote/server-target.ts";
import { tellNext } from "../screens/next-steps.ts";
import { clean, type Terminal } from "../terminal.ts";
import { refuseExisting, writeProject } from "./new-project.ts";
import { checkPackageName, toPackageName, toProgramName } from "./package-name.ts";
import { packageFiles, projectFiles } from "./project-files.ts";

export interface InitRequest {
  /** As typed; the working folder when it was not. */
  readonly folder: string | undefined;
  readonly name: string | undefined;
  /** One to be published. */
  readonly isPackage: boolean;
}

/** `meanwhile init`: makes a project where nothing of it is yet, and says what to type next. */
export function initProject(request: InitRequest, { home, terminal }: { home: Home; terminal: Terminal }): ExitCode {
  if (request.folder === "") throw new UsageError("The folder has no name; leave it out to make the project here.");
  const folder = path.resolve(terminal.folder, request.folder ?? ".");
  const packageName =
    request.name === undefined ? toPackageName(path.basename(folder)) : checkPackageName(request.name);
  const facts = { packageName, version: packageVersion() };
  const project = { folder, files: request.isPackage ? packageFiles(facts) : projectFiles(facts) };
  refuseExisting(project);
  writeProject(project, home);

  const way = path.relative(terminal.folder, folder);
  // Out of here and back in somewhere else is longer than the place itself.
  const shown = way.startsWith(path.join("..", "..")) ? folder : way;
  for (const name of Object.keys(project.files)) terminal.print(`${path.join(shown, name)}\n`);
  const run = request.isPackage ? `node bin/${toProgramName(packageName)}.js` : "npx --no meanwhile";
  tellNext(terminal, `Made the ${request.isPackage ? "package" : "project"} ${packageName}`, [
    ...(shown === "" ? [] : [["Go there", `cd ${quoteWord(clean(shown))}`] as const]),
    ["Install", "npm install"],
    ["Test it", "npm test"],
    ...(request.isPackage ? [["Build it", "npm run build"] as const] : []),
    ["Run it", `${run} report build Q3`],
    ["As a tool", `${run} setup <host>; without a host it lists them`],
  ]);
  return Exit.Ok;
}
