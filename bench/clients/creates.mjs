/** Single creates by the TypeScript SDK beside fetch, which it uses: see `bench/clients/__init__.py`. */

import process from "node:process";
import { Client } from "../../sdks/typescript/dist/index.js";
import { VERSION } from "../../sdks/typescript/dist/version.js";

const [url, ...given] = process.argv.slice(2);
const [warmUp, rounds, each, inFlight] = given.map(Number);
const callbackUrl = "http://127.0.0.1:9/";
const client = new Client(url);
const headers = {
  accept: "application/json",
  "user-agent": `tocsin-client-typescript/${VERSION}`,
  "tocsin-first-try": "1",
  "content-type": "application/json",
};

const ways = {
  sdk: (number) =>
    client.timers.create({
      namespace: "default",
      id: `sdk-${number}`,
      callbackUrl,
      delay: "1h",
      payload: { order: number, amount: 4200 },
    }),
  bare: async (number) => {
    const timer = {
      namespace: "default",
      id: `bare-${number}`,
      callbackUrl,
      delay: "1h",
      payload: { order: number, amount: 4200 },
      idempotencyKey: crypto.randomUUID(),
    };
    const answer = await fetch(`${url}/api/v1/timers/create`, {
      method: "POST",
      headers,
      body: JSON.stringify(timer),
      signal: AbortSignal.timeout(15_000),
    });
    const read = await answer.text();
    if (answer.status !== 200) {
      throw new Error(read);
    }
  },
};

let number = 0;

async function creates(create, count) {
  const work = async () => {
    for (let made = 0; made < Math.floor(count / inFlight); made++) {
      await create(number++);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, work));
}

for (const create of Object.values(ways)) {
  await creates(create, warmUp);
}
const results = [];
for (let round = 0; round < rounds; round++) {
  const result = {};
  for (const name of round % 2 === 0 ? ["sdk", "bare"] : ["bare", "sdk"]) {
    const began = process.cpuUsage();
    await creates(ways[name], each);
    const { user, system } = process.cpuUsage(began);
    result[name] = (user + system) / each;
  }
  results.push(result);
}
console.log(JSON.stringify(results));
