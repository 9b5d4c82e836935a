/** An order service: it reminds of the payment after a day, and cancels the order two days later. */

import express, { type Express } from "express";
import type pg from "pg";
import { addDuration, type Client, TocsinError } from "tocsin-client";
import { type Answer, Dedup, done, type Firing, postgres, Receiver, rescheduleAt } from "tocsin-client/receiver";

const NAMESPACE = "orders";
const REMIND_AFTER = "1d";
const CANCEL_AFTER = "2d"; // after the reminder

const TABLES = [
  "CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, amount INTEGER NOT NULL, status TEXT NOT NULL)",
  // What a mailer sends.
  "CREATE TABLE IF NOT EXISTS mails (order_id TEXT NOT NULL, subject TEXT NOT NULL)",
];

export interface Order {
  id: string;
  amount: number;
  status: "open" | "reminded" | "canceled" | "paid";
}

export interface Settings {
  pool: pg.Pool;
  tocsin: Client;
  /** Of the namespace: several during a rotation. */
  secrets: string[];
  /** Where Tocsin reaches this service. */
  publicUrl: string;
}

interface PaymentDue {
  order: string;
}

export async function createApp({ pool, tocsin, secrets, publicUrl }: Settings): Promise<Express> {
  const receiver = new Receiver({ secrets });
  const dedup = new Dedup(postgres<pg.PoolClient>(pool));
  for (const table of TABLES) {
    await pool.query(table);
  }
  await dedup.createTable();
  const app = express();

  async function find(id: string): Promise<Order | undefined> {
    return (await pool.query<Order>("SELECT id, amount, status FROM orders WHERE id = $1", [id])).rows[0];
  }

  // Before any parser: the signature is that of the bytes.
  app.post(
    "/hooks/payment",
    receiver.express<PaymentDue>((firing) => dedup.once(firing, (tx) => overdue(tx, firing))),
  );

  app.post("/orders", express.json(), async (request, response) => {
    const { id, amount } = request.body as { id?: unknown; amount?: unknown };
    if (typeof id !== "string" || !Number.isSafeInteger(amount)) {
      response.status(400).json({ error: "an order has an id and an amount" });
      return;
    }
    // The timer first: an order without one would stay open forever, a timer without an order does nothing. Whoever got no
    // answer sends the order again, and neither is made a second time.
    await tocsin.timers.create({
      namespace: NAMESPACE,
      id: `payment-${id}`,
      callbackUrl: `${publicUrl}/hooks/payment`,
      delay: REMIND_AFTER,
      payload: { order: id },
      onConflict: "keep",
    });
    await pool.query("INSERT INTO orders VALUES ($1, $2, 'open') ON CONFLICT DO NOTHING", [id, amount]);
    response.json(await find(id));
  });

  app.get("/orders/:id", async (request, response) => {
    const order = await find(request.params.id);
    response.status(order ? 200 : 404).json(order ?? { error: "there is no such order" });
  });

  app.post("/orders/:id/pay", async (request, response) => {
    const { id } = request.params;
    await pool.query("UPDATE orders SET status = 'paid' WHERE id = $1 AND status <> 'canceled'", [id]);
    const order = await find(id);
    if (order?.status !== "paid") {
      response.status(order ? 409 : 404).json({ error: order ? "the order is canceled" : "there is no such order" });
      return;
    }
    try {
      await tocsin.timers.delete({ namespace: NAMESPACE, timerId: `payment-${id}` }, { timeoutMs: 2_000 });
    } catch (error) {
      if (!(error instanceof TocsinError)) {
        throw error;
      }
      // It has ended, or Tocsin is away: then it fires, and finds a paid order.
      console.info(`the timer of order ${id} was not deleted: ${error.message}`);
    }
    response.json(order);
  });

  return app;
}

/** What is due for an order that is not paid. A payment that comes at the same time is before it or after it, not both. */
async function overdue(tx: pg.PoolClient, firing: Firing<PaymentDue>): Promise<Answer> {
  const id = firing.payload.order;
  const mail = "INSERT INTO mails VALUES ($1, $2)";
  const reminded = "UPDATE orders SET status = 'reminded' WHERE id = $1 AND status = 'open'";
  if ((await tx.query(reminded, [id])).rowCount) {
    await tx.query(mail, [id, "Please pay your order"]);
    return rescheduleAt(addDuration(firing.executeAt, CANCEL_AFTER));
  }
  const canceled = "UPDATE orders SET status = 'canceled' WHERE id = $1 AND status = 'reminded'";
  if ((await tx.query(canceled, [id])).rowCount) {
    await tx.query(mail, [id, "Your order is canceled"]);
  }
  return done();
}
