import { builtinModules } from "node:module";
import { checkProgramName } from "../../embed/program-names.ts";
import { UsageError } from "../../errors.ts";

/** What a package may be called; with a scope, as in @acme/tools. */
const namePattern = /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/;
const maxLength = 214;

/** A package cannot depend on one of its own name, and npm takes none of the others. */
const taken = new Set(
  ["meanwhile", "zod", "typescript", "@types/node", "node_modules", "favicon.ico"].concat(builtinModules),
);

function isUsable(name: string): boolean {
  return name.length <= maxLength && namePattern.test(name) && !taken.has(name);
}

/** A folder's name as npm takes it. */
export function toPackageName(folderName: string): string {
  const fitting = folderName
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/\p{Mark}/gu, "")
    .replaceAll(/[^a-z0-9._]+/g, "-")
    .slice(0, 100)
    .replaceAll(/^[-._]+|[-._]+$/g, "");
  if (fitting === "") return "my-tools";
  return isUsable(fitting) ? fitting : `${fitting}-tools`;
}

/** The name that was typed, if npm takes it. Throws a sentence with one that would do. */
export function checkPackageName(name: string): string {
  if (isUsable(name)) return name;
  const [, scope = "", rest = name] = /^(@[a-z0-9][a-z0-9-]*\/)(.*)$/.exec(name) ?? [];
  throw new UsageError(
    `--name: npm takes no package called ${JSON.stringify(name)}; write --name ${scope}${toPackageName(rest)}, with small letters, digits, - . and _, and at most ${maxLength} of them.`,
  );
}

/** Without its scope: what its server is called. */
export function toServerName(packageName: string): string {
  return packageName.replace(/^@.*\//, "");
}

/** What a program is typed by: a name that `createCli` takes. */
export function toProgramName(packageName: string): string {
  const fitting = toServerName(packageName)
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^[^a-z]+/g, "")
    .slice(0, 34)
    .replaceAll(/-+$/g, "");
  if (fitting === "") return "my-tools";
  return isProgramName(fitting) ? fitting : `${fitting}-tools`;
}

function isProgramName(name: string): boolean {
  try {
    checkProgramName(name);
    return true;
  } catch {
    return false;
  }
}
