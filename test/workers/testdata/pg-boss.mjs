// pg-boss as the tests drive it: node pg-boss.mjs PACKAGE work DIR | enqueue ORDER... | dead
import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";

const [, , name, verb, ...args] = process.argv;
const { default: before11, PgBoss = before11 } = await import(name);
const boss = new PgBoss(process.env.DATABASE_URL);
boss.on("error", console.error);
await boss.start();

async function charge([job]) {
  const [dir] = args;
  const { order } = job.data;
  appendFileSync(join(dir, "ran"), order + "\n");
  if (existsSync(join(dir, "broken"))) throw new RangeError(`card declined: order ${order}`);
}

await boss.createQueue("orders");
if (verb === "work") {
  await boss.work("orders", { pollingIntervalSeconds: 0.5 }, charge);
} else {
  for (const order of verb === "enqueue" ? args : []) await boss.send("orders", { order }, { retryLimit: 1, retryDelay: 0 });
  if (verb === "dead") {
    const { rows } = await boss.getDb().executeSql("SELECT count(*) FROM pgboss.job WHERE state = 'failed'", []);
    console.log(rows[0].count);
  }
  await boss.stop({ graceful: false });
}
