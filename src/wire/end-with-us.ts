import runtime from "node:process";
import { type Child, killChild } from "./child.ts";

/** The servers that run now. Whatever ends this process in good order, they are not left behind. */
const running = new Map<Child, () => void>();

/**
 * Kills a server when this process ends, and then does what else there is to do; the returned function says that it has
 * left by itself.
 */
export function endWithUs(child: Child, thenDo: () => void = () => undefined): () => void {
  if (running.size === 0) runtime.on("exit", killAll);
  running.set(child, thenDo);
  return () => {
    running.delete(child);
    if (running.size === 0) runtime.off("exit", killAll);
  };
}

function killAll(): void {
  for (const child of running.keys()) killChild(child);
  for (const thenDo of running.values()) thenDo();
}
