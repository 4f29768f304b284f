import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from .loopback import Server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def unserved() -> str:
    """An address at which nothing listens."""
    with socketserver.TCPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as closed:
        port = closed.server_address[1]
    return f"http://127.0.0.1:{port}/archive.tar.gz"


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that pooch asks for between attempts, recorded in place of being slept through."""
    asked: list[float] = []
    monkeypatch.setattr("pooch.core.time.sleep", asked.append)
    return asked
