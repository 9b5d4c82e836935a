/** The adapters fit the frameworks' own types, and what tests use fits Node.js. */

import { createServer } from "node:http";
import express from "express";
import fastify from "fastify";
import pg from "pg";
import { Dedup, done, fail, postgres, Receiver, sqlite } from "tocsin-client/receiver";
import { firing, sign, TestServer } from "tocsin-client/testing";
import { DatabaseSync } from "./sqlite.js";

const receiver = new Receiver({ secrets: () => process.env["TOCSIN_SECRET"] });
const pool = new pg.Pool();

express().post(
  "/hooks",
  receiver.express<{ order: number }>(async (each) => (each.payload.order > 0 ? done() : fail("no such order"))),
);
createServer((request, response) => void receiver.express(() => done())(request, response));
await fastify().register(receiver.fastify("/hooks", () => done()));
export const dedups = [
  new Dedup(postgres<pg.PoolClient>(pool)).once(firing(), async (client) => {
    await client.query<{ n: number }>("SELECT $1::int AS n", [1]);
    return done();
  }),
  new Dedup(sqlite(new DatabaseSync())).forget({ days: 7 }),
];
export const request = new Request("http://localhost/", await sign(firing({ payload: { n: 1 } }), "whsec_AAAA"));
export const steps: Promise<number> = TestServer.start({ flags: [] }).then((server) => server.advance("1h"));
