"""The site on this machine, with nvcc behind its page of kernels (`make page`).

A kernel that is edited in the page is compiled here and runs in the page. So nothing of a source is executed on this
machine; the compiler itself runs isolated, as for a submission of a class (classroom/isolation.py).

Only the reader may compile. Requests have to name this machine as their host, so that no other site's name can be made
to lead here (DNS rebinding). What compiles has to come from a page of this server and to know its key. The key is part
of the address that `make page` prints; a cookie keeps it, so that other addresses of the site work in that browser.
"""

import functools
import hmac
import http.cookies
import http.server
import json
import re
import secrets
import sys
import threading
from collections import OrderedDict
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from flashladder.classroom import device_code, isolation
from flashladder.classroom.device_code import Sandbox
from flashladder.classroom.isolation import Limits
from flashladder.core.device import Device
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.ladder.kernels import WithKernel
from flashladder.site import page_kernels

PAGE = "/run.html"
KEYED = (PAGE, "/write.html")  # the pages that compile
COMPILE = "/compile"
MOST_BYTES = 256 << 10  # of what is sent to be compiled; the longest kernel has 25,000
COMPILING = Limits(60, 30, memory_bytes=4 << 30, file_bytes=64 << 20, output_bytes=256 << 10)
AT_ONCE = 2  # compilers; a page has two kernels
KEPT = 32  # results of the compiler
_FORBIDDEN, _TOO_LONG, _BUSY = 403, 413, 503


class Refused(Exception):
    """A request that is not served: a status of HTTP and the reason."""

    def __init__(self, status: int, why: str):
        super().__init__(why)
        self.status, self.why = status, why


def diagnostics(said: str) -> list[dict]:
    """The compiler's errors, each with its line of kernel.cu: that of an error in a header is the line that uses it; 0
    where there is none."""
    found = []
    for part in re.split(r"^(?=\S+?[(:]\d+\S* ?(?:fatal )?error)", said, flags=re.M):
        error = re.match(r"(\S+?)[(:](\d+)\S* ?(?:fatal )?error[^:]*: *(.*)", part)
        if not error:
            continue
        file, line, message = error.groups()
        used = re.search(r"at line (\d+) of \"?(?:\S*/)?kernel\.cu", part)
        own = Path(file).name == "kernel.cu"
        found.append({"line": int(line) if own else int(used[1]) if used else 0, "message": message})
    return found


class Compiler:
    """nvcc for the page: from a source to PTX, or to what is wrong with it."""

    def __init__(self, level: isolation.Level, limits: Limits = COMPILING):
        self._sandbox = Sandbox(level, Device("sim", None), compiling=limits)
        self._slots = threading.Semaphore(AT_ONCE)
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple, dict] = OrderedDict()

    def compile(self, wanted: dict) -> dict:
        """wanted: stage, source, and the symbols of the instances that will be launched. Returns {"ptx": ...}, or
        {"words": ..., "diagnostics": [{"line", "message"}]}. Refused where `wanted` makes no sense."""
        stage, instances, source = _checked(wanted)
        key = (stage.id, instances, source)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        if not self._slots.acquire(timeout=COMPILING.seconds):
            raise Refused(_BUSY, "the compiler is busy with other kernels")
        try:
            built = device_code.compile_kernel(stage, source, self._sandbox, instances)
        finally:
            self._slots.release()
        if built.ok:
            answer = {"ptx": page_kernels.without_folders(built.ptx.decode(errors="replace"))[0]}
        else:
            answer = {"words": built.words, "diagnostics": diagnostics(built.words)}
        if not built.spent:
            with self._lock:
                self._known[key] = answer
                while len(self._known) > KEPT:
                    self._known.popitem(last=False)
        return answer


def _checked(wanted: dict) -> tuple[WithKernel, tuple[tuple[str, str], ...], str]:
    fields = wanted if isinstance(wanted, dict) else {}
    name, source, symbols = (fields.get(field) for field in ("stage", "source", "symbols"))
    if not isinstance(name, str) or not isinstance(source, str) or not isinstance(symbols, list):
        raise Refused(400, "what is to be compiled has a stage, a source and symbols")
    try:
        stage = stages.entry(name)
    except FlashLadderError as error:
        raise Refused(400, str(error)) from error
    if not isinstance(stage, WithKernel):
        raise Refused(400, f"stage {stage.id} has no kernel")
    known = {symbol: declared for declared, symbol in page_kernels.instances(stage)}
    if not symbols or not all(isinstance(one, str) and one in known for one in symbols):
        raise Refused(400, f"stage {stage.id} has no such kernels: {symbols}")
    return stage, tuple((known[one], one) for one in sorted(set(symbols))), source


class Handler(http.server.SimpleHTTPRequestHandler):
    server: "Server"
    timeout = 30  # seconds in which a request has to arrive
    # What Python does not know everywhere.
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript",
        ".wasm": "application/wasm",
        ".gz": "application/gzip",
    }

    def do_GET(self):  # noqa: N802 (the library's name)
        page = urlsplit(self.path).path
        self._answer(lambda: self._page(page) if page in KEYED else super(Handler, self).do_GET())

    def do_HEAD(self):  # noqa: N802
        self._answer(super().do_HEAD)

    def do_POST(self):  # noqa: N802
        self._answer(self._compile)

    def _answer(self, serve) -> None:
        try:
            self._check_host()
            serve()
        except Refused as refused:
            self._send(refused.status, "application/json", json.dumps({"error": refused.why}).encode())

    def _check_host(self) -> None:
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0] not in self.server.hosts:
            raise Refused(_FORBIDDEN, "this server answers to 127.0.0.1 and localhost alone")

    def _key(self) -> tuple[str, bool]:
        """The key that the request brings, "" where it brings none, and whether by its address."""
        named = parse_qs(urlsplit(self.path).query).get("key", [""])[-1]
        kept = http.cookies.SimpleCookie(self.headers.get("Cookie", "")).get(self.server.cookie)
        key = named or (kept.value if kept else "")
        return (key, bool(named)) if self.server.is_key(key) else ("", False)

    def _page(self, page: str) -> None:
        """A page of kernels; to the reader with the key by which it reaches the compiler."""
        file = Path(self.directory) / page.lstrip("/")
        if not file.is_file():
            raise Refused(404, "the site was built without this page")
        text = file.read_text()
        key, new = self._key()
        if key:
            text = text.replace("</head>", f'<meta name="flashladder-compiler" content="{key}"></head>', 1)
        cookie = f"{self.server.cookie}={key}; Path=/; HttpOnly; SameSite=Strict" if new else ""
        self._send(200, "text/html; charset=utf-8", text.encode(), cookie)

    def _compile(self) -> None:
        if self.path != COMPILE:
            raise Refused(404, "only the compiler takes what is sent")
        if self.headers.get("Origin") != f"http://{self.headers['Host']}":
            raise Refused(_FORBIDDEN, "only a page of this server may compile")
        if not self.server.is_key(self.headers.get("X-FlashLadder-Key", "")):
            raise Refused(_FORBIDDEN, "the page does not know the key: open the address that `make page` has printed")
        if self.headers.get_content_type() != "application/json":
            raise Refused(415, "what is to be compiled comes as JSON")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise Refused(411, "the length of what is sent is missing")
        if int(length) > MOST_BYTES:
            raise Refused(_TOO_LONG, f"the source has more than {MOST_BYTES} bytes")
        try:
            wanted = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError) as error:
            raise Refused(400, "what was sent is no JSON") from error
        answer = json.dumps(self.server.compiler.compile(wanted)).encode()
        self._send(200, "application/json", answer)

    def _send(self, status: int, kind: str, body: bytes, cookie: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if cookie:
            self.send_header("Set-Cookie", cookie)
        self.end_headers()
        self.wfile.write(body)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "same-origin")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Content-Security-Policy", "frame-ancestors 'self'")
        super().end_headers()

    def log_message(self, *_) -> None:
        """Nothing: the terminal is the reader's."""


class Server(http.server.ThreadingHTTPServer):
    """Bound to this machine alone. port 0: any that is free."""

    daemon_threads = True
    handler = Handler

    def __init__(self, folder: Path, compiler: Compiler, port: int):
        super().__init__(("127.0.0.1", port), functools.partial(self.handler, directory=str(folder)))
        self.compiler = compiler
        self.key = secrets.token_urlsafe(24)
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}
        self.cookie = f"flashladder-{self.server_port}"  # browsers tell ports of one host apart by nothing else

    def handle_error(self, request, client_address) -> None:
        """A browser that does not wait for an answer is no error."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}{PAGE}?key={self.key}"

    def is_key(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self.key.encode())
