// BullMQ alone on its PostgreSQL backend: adds jobs, or works on them.
import process from "node:process";
import { createPostgresBackend, withBackend } from "bullmq";
import { text } from "../tasks/engine.mjs";
import { count, eachOf, role, say, told, url, width } from "./role.mjs";

const { Queue, Worker } = withBackend(createPostgresBackend);
const address = new URL(url);
const schema = `${address.searchParams.get("schema")}_alone`;
address.search = "";
const connection = { connectionString: String(address), schema, migrate: true, max: width };
const [go, end] = [told("go"), told("end")];
if (role === "work") {
  let done = 0;
  const all = Promise.withResolvers();
  const worker = new Worker("alone", async ({ data }) => data, { connection, concurrency: width });
  worker.on("completed", () => ++done === count && all.resolve());
  worker.on("error", (error) => process.stderr.write(`${error.message}\n`));
  await worker.waitUntilReady();
  say("ready");
  await all.promise;
  say("done");
  await end;
  await worker.close(true);
} else {
  const queue = new Queue("alone", { connection, defaultJobOptions: { removeOnComplete: true } });
  await queue.waitUntilReady();
  say("ready");
  await go;
  await eachOf(() => queue.add("run", { text }));
  await end;
  await queue.close();
}
process.exit(0);
