/** Starts the driver: on the platform itself, or with TOCSIN_SDK_MODE=edge as one script in the sandbox of edge runtimes. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { sqlite } from "./dist/receiver/index.js";
import { openDatabase } from "./tests/sqlite.mjs";

const folder = mkdtempSync(join(tmpdir(), "tocsin-driver-"));
const databases = new Map();

function database(name) {
  if (!databases.has(name)) {
    databases.set(name, openDatabase(join(folder, name)));
  }
  return sqlite(databases.get(name));
}

/** The driver in a realm that has the web's functions and none of Node.js. */
async function driveOnEdge(control) {
  const { EdgeVM } = await import("@edge-runtime/vm");
  const { build } = await import("esbuild");
  const bundle = { bundle: true, format: "iife", globalName: "driver", platform: "neutral", write: false };
  const built = await build({ ...bundle, entryPoints: ["driver.mjs"], absWorkingDir: import.meta.dirname });
  const edge = new EdgeVM();
  edge.evaluate(built.outputFiles[0].text);
  edge.context.database = database;
  return edge.evaluate(`driver.drive(${JSON.stringify(control)}, database)`);
}

try {
  const control = process.env.TOCSIN_SDK_CONTROL;
  const run =
    process.env.TOCSIN_SDK_MODE === "edge"
      ? driveOnEdge
      : async (url) => (await import("./driver.mjs")).drive(url, database);
  const { failures, summary } = await run(control);
  for (const each of [...failures, summary]) {
    console.log(each);
  }
  process.exitCode = failures.length > 0 ? 1 : 0;
} finally {
  for (const each of databases.values()) {
    each.close();
  }
  rmSync(folder, { recursive: true });
}
