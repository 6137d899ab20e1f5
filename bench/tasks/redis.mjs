// A Redis for BullMQ: the one that MEANWHILE_BENCH_REDIS names, or a redis-server from PATH that writes like our store
// does.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import net from "node:net";
import process from "node:process";
import { watchOver } from "./children.mjs";

/** Undefined where there is none. */
export async function openRedis(folder) {
  const given = process.env.MEANWHILE_BENCH_REDIS;
  if (given) {
    const { hostname, port } = new URL(given.includes("://") ? given : `redis://${given}`);
    return {
      host: hostname,
      port: Number(port || 6379),
      about: `Redis of MEANWHILE_BENCH_REDIS, as it is configured`,
      close: async () => {},
    };
  }
  mkdirSync(folder, { recursive: true });
  const port = await findFreePort();
  // Durable as a task is: a write is answered once it has reached the disk.
  const durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
  const child = spawn("redis-server", ["--bind", "127.0.0.1", "--port", String(port), "--dir", folder, ...durable], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = watchOver(child, 600_000);
  const isReady = await Promise.race([
    findLine(child.stdout, "Ready to accept connections"),
    ended.catch(refuseUnlessMissing),
  ]);
  if (isReady === undefined) return undefined;
  if (isReady !== true) throw new Error(`redis-server ended with ${isReady}`);
  return {
    host: "127.0.0.1",
    port,
    about: "Redis with appendfsync always",
    async close() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

function refuseUnlessMissing(error) {
  if (error.code !== "ENOENT") throw error;
}

function findLine(stream, wanted) {
  let printed = "";
  return new Promise((resolve) => {
    stream.setEncoding("utf8").on("data", (part) => {
      printed = (printed + part).slice(-10_000);
      if (printed.includes(wanted)) resolve(true);
    });
  });
}

async function findFreePort() {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
