import { once } from "node:events";
import { createServer } from "node:net";
import { cleanUp } from "./home.ts";

/** Makes a Unix domain socket: a file that is neither regular nor a folder. */
export async function makeSocket(file: string): Promise<void> {
  const server = createServer().listen(file);
  await once(server, "listening");
  cleanUp(() => new Promise((resolve) => server.close(resolve)));
}
