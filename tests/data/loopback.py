"""A web server on the loopback interface whose answers a test scripts, and archives to serve."""

import io
import tarfile
from collections import defaultdict
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

type Answer = Callable[[BaseHTTPRequestHandler], None]


def body(content: bytes) -> Answer:
    """The whole content."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    return answer


def cut_short(content: bytes) -> Answer:
    """A header that promises all of the content, half of it, and the end of the connection."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content[: len(content) // 2])

    return answer


def status(code: int) -> Answer:
    """An empty answer with this status."""
    return lambda request: request.send_error(code)


def archive(files: Mapping[str, bytes]) -> bytes:
    """A gzipped tar archive of these files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


class Server(ThreadingHTTPServer):
    """Gives the scripted answers of a path one after the other, the last one again and again."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: dict[str, list[Answer]] = {}
        self.requests: dict[str, int] = defaultdict(int)

    def offer(self, path: str, *answers: Answer) -> str:
        """The address at which these answers are given."""
        self.script[path] = list(answers)
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        answers = self.server.script[self.path]
        turn = self.server.requests[self.path]
        self.server.requests[self.path] += 1
        answers[min(turn, len(answers) - 1)](self)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the output of the tests clean."""
