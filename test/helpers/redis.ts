import { spawn, spawnSync } from "node:child_process";
import { createServer } from "node:net";
import { cleanUp, temporaryFolder } from "./home.ts";

/** The password of every test's Redis: it must turn up nowhere. */
export const redisPassword = "secret-of-the-queue";

const names = ["redis-server", "valkey-server"];
const program = names.find((name) => spawnSync(name, ["--version"]).status === 0);

/** Whether there is one on this machine; said out loud where there is none, for then something was not tested. */
export function hasRedis(): boolean {
  if (program === undefined)
    process.stderr.write("redis-server is not on PATH: BullMQ on Redis was not tested (nor is valkey-server)\n");
  return program !== undefined;
}

/** Starts one that keeps nothing and ends after the test; resolves with its URL. */
export async function startRedis(): Promise<string> {
  const port = await freePort();
  const words = ["--port", String(port), "--bind", "127.0.0.1", "--requirepass", redisPassword];
  const keepsNothing = ["--save", "", "--appendonly", "no", "--dir", temporaryFolder()];
  const child = spawn(program as string, [...words, ...keepsNothing], { stdio: ["ignore", "pipe", "ignore"] });
  const exited = new Promise((resolve) => child.once("close", resolve));
  cleanUp(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  let said = "";
  await new Promise<void>((resolve, reject) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes("Ready to accept connections")) resolve();
    });
    child.once("close", () => reject(new Error(`${program} ended: ${said}`)));
  });
  return `redis://:${redisPassword}@127.0.0.1:${port}`;
}

export async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
