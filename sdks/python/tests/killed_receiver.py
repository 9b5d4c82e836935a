"""A receiver that kills its own process at a point of its first callback: python killed_receiver.py PORT DATABASE POINT."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from tocsin_client.receiver import Dedup, Receiver, done

PORT, DATABASE, POINT = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]


def die(point):
    if point == POINT and not (marker := DATABASE.with_suffix(".died")).exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def remind(firing):
    def work(connection):
        connection.execute("INSERT INTO reminders VALUES (?)", (firing.timer_id,))
        die("before commit")
        return done()

    answer = Dedup(lambda: sqlite3.connect(DATABASE)).once(firing, work)
    die("before answer")
    return answer


class Hook(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        answer = Receiver(os.environ["SECRET"]).handle(self.headers.items(), body, remind)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", PORT), Hook)
print(server.server_port, flush=True)
server.serve_forever()
