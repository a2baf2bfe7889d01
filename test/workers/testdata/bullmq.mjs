// BullMQ as the tests drive it: node bullmq.mjs PACKAGE work DIR | enqueue ORDER... | dead
import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";

const [, , name, verb, ...args] = process.argv;
const { Queue, Worker } = await import(name).then((m) => m.default ?? m);
const { hostname: host, port } = new URL(process.env.REDIS_URL);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };

async function charge(job) {
  const [dir] = args;
  const { order } = job.data;
  appendFileSync(join(dir, "ran"), order + "\n");
  if (existsSync(join(dir, "broken"))) throw new RangeError(`card declined: order ${order}`);
}

if (verb === "work") {
  new Worker("orders", charge, { connection });
} else {
  const queue = new Queue("orders", { connection });
  if (verb === "enqueue") for (const order of args) await queue.add("charge", { order }, { attempts: 2 });
  if (verb === "dead") console.log(await queue.getFailedCount());
  await queue.close();
}
