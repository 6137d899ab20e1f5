import path from "node:path";
import { Exit, type ExitCode, UsageError } from "../../errors.ts";
import type { Home } from "../../paths.ts";
import { quoteWord } from "../remote/server-target.ts";
import { tellNext } from "../screens/next-steps.ts";
import { clean, type Terminal } from "../terminal.ts";
import { meanwhileSpecifier } from "./dependency-versions.ts";
import { refuseExisting, writeProject } from "./new-project.ts";
import { checkPackageName, toPackageName, toProgramName } from "./package-name.ts";
import { packageFiles, projectFiles } from "./project-files.ts";

export interface InitRequest {
  /** As typed; the working folder when it was not. */
  readonly folder: string | undefined;
  readonly name: string | undefined;
  /** True: a package to publish. */
  readonly isPackage: boolean;
}

/** `meanwhile init`: makes a project in a folder that has none, and prints what to type next. */
export function initProject(request: InitRequest, { home, terminal }: { home: Home; terminal: Terminal }): ExitCode {
  if (request.folder === "") throw new UsageError("The folder has no name; leave it out to make the project here.");
  const folder = path.resolve(terminal.folder, request.folder ?? ".");
  const packageName =
    request.name === undefined ? toPackageName(path.basename(folder)) : checkPackageName(request.name);
  const facts = { packageName, meanwhile: meanwhileSpecifier(terminal.folder) };
  const project = { folder, files: request.isPackage ? packageFiles(facts) : projectFiles(facts) };
  refuseExisting(project);
  writeProject(project, home);

  const way = path.relative(terminal.folder, folder);
  // A path with several `..` is longer than the absolute path.
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
    ...(request.isPackage && facts.meanwhile.startsWith("file:")
      ? [["To publish", "replace the path of meanwhile in package.json by a version on npm"] as const]
      : []),
  ]);
  return Exit.Ok;
}
