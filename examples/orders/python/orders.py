"""An order service: it reminds of the payment after a day, and cancels the order two days later.

uvicorn --factory orders:create_app --port 9000
"""

from __future__ import annotations

import logging
import os
from datetime import timedelta

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session, sessionmaker
from tocsin_client import Client, errors
from tocsin_client.receiver import Answer, Dedup, Firing, Receiver, SqlAlchemy, done, reschedule_at

NAMESPACE = "orders"
REMIND_AFTER = timedelta(days=1)
CANCEL_AFTER = timedelta(days=2)  # after the reminder

_TABLES = (
    "CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, amount INTEGER NOT NULL, status TEXT NOT NULL)",
    # What a mailer sends.
    "CREATE TABLE IF NOT EXISTS mails (order_id TEXT NOT NULL, subject TEXT NOT NULL)",
)


class NewOrder(BaseModel):
    id: str
    amount: int


class Order(NewOrder):
    status: str  # open, reminded, canceled, paid


def create_app() -> FastAPI:
    environment = os.environ
    sessions = sessionmaker(create_engine(environment.get("DATABASE_URL", "sqlite:///orders.db")))
    tocsin = Client(environment.get("TOCSIN_URL", "http://127.0.0.1:8080"), key=environment.get("TOCSIN_KEY"))
    hook = environment.get("PUBLIC_URL", "http://127.0.0.1:9000") + "/hooks/payment/"
    dedup = Dedup(SqlAlchemy(sessions))

    with sessions.begin() as tx:
        for table in _TABLES:
            tx.execute(text(table))
    dedup.create_table()
    app = FastAPI()

    def find(tx: Session, order_id: str) -> Order:
        row = tx.execute(text("SELECT id, amount, status FROM orders WHERE id = :id"), {"id": order_id}).one_or_none()
        if row is None:
            raise HTTPException(404, "there is no such order")
        return Order(**row._mapping)

    @app.post("/orders")
    def place(new: NewOrder) -> Order:
        # The timer first: an order without one would stay open forever, a timer without an order does nothing. Whoever got
        # no answer sends the order again, and neither is made a second time.
        tocsin.timers.create(
            NAMESPACE, f"payment-{new.id}", hook, delay=REMIND_AFTER, payload={"order": new.id}, on_conflict="keep"
        )
        with sessions.begin() as tx:
            tx.execute(
                text("INSERT INTO orders VALUES (:id, :amount, 'open') ON CONFLICT DO NOTHING"), new.model_dump()
            )
            return find(tx, new.id)

    @app.get("/orders/{order_id}")
    def show(order_id: str) -> Order:
        with sessions.begin() as tx:
            return find(tx, order_id)

    @app.post("/orders/{order_id}/pay")
    def pay(order_id: str) -> Order:
        with sessions.begin() as tx:
            paid = "UPDATE orders SET status = 'paid' WHERE id = :id AND status <> 'canceled'"
            tx.execute(text(paid), {"id": order_id})
            order = find(tx, order_id)
        if order.status != "paid":
            raise HTTPException(409, "the order is canceled")
        try:
            tocsin.with_options(timeout=2).timers.delete(NAMESPACE, f"payment-{order_id}")
        except errors.TocsinError as error:
            # It has ended, or Tocsin is away: then it fires, and finds a paid order.
            logging.info("the timer of order %s was not deleted: %s", order_id, error)
        return order

    def payment_due(firing: Firing) -> Answer:
        return dedup.once(firing, lambda tx: _overdue(tx, firing))

    receiver = Receiver(lambda: environment["TOCSIN_SECRET"].split())
    app.mount("/hooks/payment", receiver.asgi(payment_due))
    return app


def _overdue(tx: Session, firing: Firing) -> Answer:
    """What is due for an order that is not paid. A payment that comes at the same time is before it or after it, not both."""
    order = {"id": firing.payload["order"]}
    mail = text("INSERT INTO mails VALUES (:id, :subject)")
    reminded = "UPDATE orders SET status = 'reminded' WHERE id = :id AND status = 'open'"
    if tx.execute(text(reminded), order).rowcount:
        tx.execute(mail, {**order, "subject": "Please pay your order"})
        return reschedule_at(firing.execute_at + CANCEL_AFTER)
    canceled = "UPDATE orders SET status = 'canceled' WHERE id = :id AND status = 'reminded'"
    if tx.execute(text(canceled), order).rowcount:
        tx.execute(mail, {**order, "subject": "Your order is canceled"})
    return done()
