// pg-boss: sends jobs, or works on them, a batch at a time as its authors advise.
import process from "node:process";
import { text } from "../tasks/engine.mjs";
import { count, eachOf, role, say, told, url, width } from "./role.mjs";

const { PgBoss } = await import("pg-boss");
const address = new URL(url);
const schema = `${address.searchParams.get("schema")}_boss`;
address.search = "";
const [go, end] = [told("go"), told("end")];
const boss = new PgBoss({ connectionString: String(address), schema, max: width });
boss.on("error", (error) => process.stderr.write(`${error.message}\n`));
await boss.start();
await boss.createQueue("alone");
if (role === "work") {
  let done = 0;
  const all = Promise.withResolvers();
  await boss.work("alone", { batchSize: width, pollingIntervalSeconds: 0.5 }, async (jobs) => {
    done += jobs.length;
    if (done >= count) all.resolve();
  });
  say("ready");
  await all.promise;
  say("done");
} else {
  say("ready");
  await go;
  await eachOf(() => boss.send("alone", { text }));
}
await end;
process.exit(0);
