"""make page: the built site at an address of this machine, where the kernels of its page can be edited."""

import contextlib

from flashladder.building import build
from flashladder.classroom import isolation
from flashladder.commands.docs import site_directory
from flashladder.core.console import say
from flashladder.core.errors import FlashLadderError
from flashladder.site import run_page
from flashladder.site.page_server import PAGE, Compiler, Server

PORT = 8421


def compiler_level() -> isolation.Level:
    """How the compiler runs: isolated if this machine can do that. Else within limits alone: what it reads goes to the
    reader's own page, and nothing of a source is executed."""
    try:
        return isolation.choose()
    except FlashLadderError:
        say("This machine offers no isolation (install bubblewrap): the compiler can read every file that you can.")
        return isolation.NONE


def run(port: int = PORT) -> int:
    folder = site_directory() / "html"
    if not run_page.is_built() or not (folder / PAGE.lstrip("/")).is_file():
        raise FlashLadderError(
            "The site with the page that runs kernels is not built here. `make browser docs` builds it; the first "
            "time takes about ten minutes."
        )
    build.configure()
    try:
        server = Server(folder, Compiler(compiler_level()), port)
    except OSError as error:
        raise FlashLadderError(
            f"Port {port} cannot be had ({error.strerror}): another `make page` may run. `make page PORT=0` takes any "
            "that is free."
        ) from error
    with server:
        say(f"Open {server.address}\nOnly programs of this machine reach it, and only that address compiles. "
            "Ctrl-C ends it.")  # fmt: skip
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0
