// graphile-worker as the tests drive it: node graphile-worker.mjs PACKAGE work DIR | enqueue ORDER... | dead
import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { makeWorkerUtils, run } from "graphile-worker";

const [, , , verb, ...args] = process.argv;
const connectionString = process.env.DATABASE_URL;

function charge({ order }) {
  const [dir] = args;
  appendFileSync(join(dir, "ran"), order + "\n");
  if (existsSync(join(dir, "broken"))) throw new RangeError(`card declined: order ${order}`);
}

if (verb === "work") {
  await run({ connectionString, concurrency: 1, pollInterval: 200, taskList: { charge } });
} else {
  const utils = await makeWorkerUtils({ connectionString });
  await utils.migrate();
  for (const order of verb === "enqueue" ? args : []) await utils.addJob("charge", { order }, { maxAttempts: 2 });
  if (verb === "dead") {
    const dead = "SELECT count(*) FROM graphile_worker.jobs WHERE attempts >= max_attempts AND locked_at IS NULL";
    console.log(await utils.withPgClient((client) => client.query(dead).then(({ rows }) => rows[0].count)));
  }
  await utils.release();
}
