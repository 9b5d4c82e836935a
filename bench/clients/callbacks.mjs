/** Callbacks of 1 MiB by the TypeScript receiver: see `bench/clients/callbacks.py`. */

import { createHmac } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { done, Receiver } from "../../sdks/typescript/dist/receiver/index.js";

const [rounds, webhookId, timestamp, signature, ...secrets] = process.argv.slice(2);
const body = new Uint8Array(1024 * 1024).fill(0x78);
const small = body.slice(0, 1);
const receiver = new Receiver({ secrets, logger: { warn() {}, error() {}, debug() {} } });

const callback = async (number, given = body) => {
  const headers = {
    "webhook-id": webhookId,
    "webhook-timestamp": timestamp,
    "webhook-signature": number === 1 ? signature : Array(number).fill(`v1,${"A".repeat(43)}=`).join(" "),
    "tocsin-namespace": "default",
    "tocsin-timer-id": "large",
  };
  return (await receiver.handle(headers, given, () => done())).status;
};

const peakKb = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]);

async function milliseconds(work) {
  const times = [];
  for (let round = 0; round < Number(rounds); round++) {
    const began = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(began);
    times.push((user + system) / 1_000);
  }
  return times;
}

const results = {};
const numbers = [1, 10, 4_000];
for (const number of numbers) {
  for (let made = 0; made < 100; made++) {
    await callback(number, small);
  }
}
for (const number of numbers) {
  writeFileSync("/proc/self/clear_refs", "5"); // the peak starts over
  const before = peakKb();
  const status = await callback(number);
  results[number] = { status, bytes: (peakKb() - before) * 1_024 };
}
for (const number of numbers) {
  results[number].ms = await milliseconds(() => callback(number));
}
results.hash = { ms: await milliseconds(() => createHmac("sha256", "key").update(body).digest()) };
console.log(JSON.stringify(results));
