import { joinBytes, realPathOf } from "../_pack/paths.ts";

/** True for names that begin with a dot: settings, versions, rubbish. */
export function isHidden(name: Buffer): boolean {
  return name[0] === ".".charCodeAt(0);
}

/** Which folders no walk goes into: hidden ones, installed packages, and Meanwhile's own, whose texts are copies. */
export function folderSkipper(home: string): (folder: Buffer, name: Buffer) => boolean {
  const own = realPathOf(Buffer.from(home));
  return (folder, name) =>
    isHidden(name) || name.toString("latin1") === "node_modules" || joinBytes(folder, name).equals(own);
}
