"""Three days of orders in a moment: the service, and a Tocsin whose clock is moved."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import httpx
import pytest
import uvicorn
from orders import NAMESPACE, create_app
from sqlalchemy import create_engine, text
from tocsin_client.testing import TestServer, firing, sign

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"


@pytest.fixture(scope="module")
def tocsin() -> Iterator[TestServer]:
    with TestServer() as server, server.client() as client:
        client.namespaces.create(NAMESPACE, secret=SECRET)
        yield server


@pytest.fixture
def database(tmp_path) -> str:
    return f"sqlite:///{tmp_path}/orders.db"


@pytest.fixture
def shop(tocsin, database, monkeypatch) -> Iterator[httpx.Client]:
    """The service on a free port, where Tocsin reaches it."""
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    for name, value in {"DATABASE_URL": database, "TOCSIN_URL": tocsin.url, "TOCSIN_SECRET": SECRET}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PUBLIC_URL", url)
    server = uvicorn.Server(uvicorn.Config(create_app(), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    with httpx.Client(base_url=url) as client:
        yield client
    server.should_exit = True
    thread.join()


def status(shop, order_id):
    return shop.get(f"/orders/{order_id}").json()["status"]


def mails(database, order_id):
    with create_engine(database).connect() as opened:
        return [*opened.execute(text("SELECT subject FROM mails WHERE order_id = :id"), {"id": order_id}).scalars()]


def test_unpaid_order_is_canceled_after_a_reminder(tocsin, shop, database):
    first, second = (shop.post("/orders", json={"id": "17", "amount": 4200}) for _ in range(2))
    assert first.json() == second.json() == {"id": "17", "amount": 4200, "status": "open"}
    tocsin.advance("25h")
    assert status(shop, "17") == "reminded"
    tocsin.advance("48h")
    assert status(shop, "17") == "canceled"
    assert mails(database, "17") == ["Please pay your order", "Your order is canceled"]
    assert shop.post("/orders/17/pay").status_code == 409


def test_paid_order_stays_paid(tocsin, shop, database):
    shop.post("/orders", json={"id": "18", "amount": 990})
    tocsin.advance("25h")
    assert shop.post("/orders/18/pay").json()["status"] == "paid"
    with tocsin.client() as client:
        assert client.timers.get(NAMESPACE, "payment-18").status == "canceled"
    tocsin.advance("48h")
    assert status(shop, "18") == "paid"
    assert mails(database, "18") == ["Please pay your order"]


def test_repeated_firing_reminds_once(shop, database):
    shop.post("/orders", json={"id": "19", "amount": 500})
    request = sign(firing("payment-19", namespace=NAMESPACE, payload={"order": "19"}), SECRET)
    answers = [shop.post("/hooks/payment/", content=request.body, headers=request.headers) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert "nextExecuteAt" in answers[0].json()
    assert mails(database, "19") == ["Please pay your order"]
