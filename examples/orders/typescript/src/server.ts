/** Runs the order service: `npm start`. */

import pg from "pg";
import { Client } from "tocsin-client";
import { createApp } from "./orders.js";

const { DATABASE_URL, TOCSIN_URL = "http://127.0.0.1:8080", TOCSIN_KEY, TOCSIN_SECRET = "", PORT = "9000" } = process.env;

const app = await createApp({
  pool: new pg.Pool({ connectionString: DATABASE_URL }),
  tocsin: new Client(TOCSIN_URL, TOCSIN_KEY === undefined ? {} : { key: TOCSIN_KEY }),
  secrets: TOCSIN_SECRET.split(" "),
  publicUrl: process.env.PUBLIC_URL ?? `http://127.0.0.1:${PORT}`,
});
app.listen(Number(PORT), "127.0.0.1");
