"""A proxy for http URLs that keeps what it was asked for."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import urllib3


class Proxy:
    """Forwards requests; `targets` are their URLs, `credentials` what they gave for the proxy."""

    def __init__(self):
        self.targets, self.credentials = [], []
        direct = urllib3.PoolManager()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def forward(handler):
                self.targets.append(handler.path)
                self.credentials.append(handler.headers.get("proxy-authorization"))
                body = handler.rfile.read(int(handler.headers.get("content-length", 0)))
                headers = {
                    name: handler.headers[name] for name in ("content-type", "authorization") if name in handler.headers
                }
                answer = direct.request(handler.command, handler.path, body=body, headers=headers, retries=False)
                handler.send_response(answer.status)
                handler.send_header("content-type", answer.headers.get("content-type", ""))
                handler.send_header("content-length", str(len(answer.data)))
                handler.end_headers()
                handler.wfile.write(answer.data)

            do_GET = do_POST = forward

            def log_message(self, *_):
                pass

        self._listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._listener.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self._listener.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown()
        self._listener.server_close()
