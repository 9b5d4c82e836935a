// BullMQ: delayed jobs in Redis. `node bullmq.mjs create|work PORT [RECEIVER]`; orders as in programs/common.py.
import { createInterface } from "node:readline";
import { Queue, Worker } from "bullmq";
import { Pool } from "undici";

const CONCURRENCY = 300;
const CONNECTIONS = 64;
const [role, port, receiver] = process.argv.slice(2);
const connection = { host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null };

function timersOf(order) {
  return Array.from({ length: order.count }, (_, number) => {
    // It keeps whole milliseconds.
    const due = Math.ceil(order.due_us / 1000 + Math.random() * order.spread_s * 1000);
    const body = { executeAt: new Date(due).toISOString(), order: `${order.due_us}-${number}`, amount: 4200 };
    return { due, body: JSON.stringify(body) };
  });
}

function job({ due, body }) {
  const timestamp = Date.now();
  const opts = { timestamp, delay: Math.max(due - timestamp, 0), removeOnComplete: true, removeOnFail: true };
  return { name: "fire", data: { body }, opts };
}

async function create() {
  const queue = new Queue("timers", { connection });
  await queue.waitUntilReady();
  console.log("{}");
  for await (const line of createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    const timers = timersOf(order);
    const size = order.batch || 1;
    let next = 0;
    const caller = async () => {
      while (next < timers.length) {
        const jobs = timers.slice(next, (next += size)).map(job);
        if (order.batch) await queue.addBulk(jobs);
        else await queue.add(jobs[0].name, jobs[0].data, jobs[0].opts);
      }
    };
    const began = performance.now();
    await Promise.all(Array.from({ length: order.callers }, caller));
    console.log(JSON.stringify({ seconds: (performance.now() - began) / 1000 }));
  }
  await queue.close();
}

async function work() {
  const url = new URL(receiver);
  const pool = new Pool(url.origin, { connections: CONNECTIONS });
  const headers = { "content-type": "application/json" };
  const fire = async ({ data }) => {
    const response = await pool.request({ path: url.pathname, method: "POST", headers, body: data.body });
    await response.body.dump();
    if (response.statusCode !== 200) throw new Error(`the receiver answered ${response.statusCode}`);
  };
  const worker = new Worker("timers", fire, { connection, concurrency: CONCURRENCY });
  worker.on("error", (error) => console.error(error));
  worker.on("failed", (_, error) => console.error(error));
  await worker.waitUntilReady();
}

await { create, work }[role]();
