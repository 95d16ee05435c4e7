"""A service that answers hooks over real HTTP on the loopback interface."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Respond = Callable[[dict[str, Any]], tuple[int, bytes]]


@dataclass
class HookService:
    """What was posted, and where."""

    url: str
    calls: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def hook_service(respond: Respond) -> Iterator[HookService]:
    """Run a service that answers each call with a status and a body; 302 sends to itself."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128  # more at once than this resets connections, which by default are five

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            call = json.loads(self.rfile.read(int(self.headers["content-length"])))
            service.calls.append(call)
            service.headers.append({name.lower(): value for name, value in self.headers.items()})
            status, body = respond(call)
            self.send_response(status)
            if status == 302:
                self.send_header("location", service.url)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = Server(("127.0.0.1", 0), Handler)
    service = HookService(f"http://127.0.0.1:{server.server_port}/hook")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
