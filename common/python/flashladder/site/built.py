"""Looks over the pages that were built: every link within the site leads to a page and to a place on it, and nothing
is fetched from elsewhere, so that the site works without a network."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads by itself, unlike a link that a reader may follow.
_LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("video", "src")}


class _Page(HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.places: set[str] = set()  # what a # may name
        self.later: set[str] = set()  # what is loaded when it comes into sight
        self.wanted: list[tuple[int, str, bool]] = []  # line, address, whether a browser loads it by itself
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value or "")
            elif value and (name == "href" or (tag, name) in _LOADED):
                self.wanted.append((self.getpos()[0], value, (tag, name) in _LOADED))
                if ("loading", "lazy") in attributes:
                    self.later.add(value)


def weight(page: Path) -> int:
    """Bytes that a browser loads by itself to show a page: the page and the files that it names."""
    text = page.read_text()
    found = _Page(text)
    at_once = (address for _, address, loaded in found.wanted if loaded and address not in found.later)
    loaded = {urlsplit(address).path for address in at_once if ":" not in address}
    named = {name for name in loaded if not name.endswith(".html")}  # a <link> to the next page is not loaded
    return len(text.encode()) + sum((page.parent / unquote(name)).stat().st_size for name in named)


def faults(folder: Path) -> list[str]:
    """A sentence for each address of a page below `folder` that leads nowhere, or out to the network by itself."""
    pages = {file: _Page(file.read_text()) for file in sorted(folder.rglob("*.html"))}
    found = []
    for file, page in pages.items():
        for line, address, loaded in page.wanted:
            parts = urlsplit(address)
            at = f"{file.relative_to(folder)}:{line}: {address}"
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                if loaded:
                    found.append(f"{at} is loaded from elsewhere; the site has to hold it itself")
                continue
            place = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            place = place / "index.html" if place.is_dir() else place
            if not place.exists():
                found.append(f"{at}: there is no such page")
            elif "=" in parts.fragment or "/" in parts.fragment:
                continue  # what a page's script is to show
            elif parts.fragment and place in pages and unquote(parts.fragment) not in pages[place].places:
                found.append(f"{at}: the page has no such place")
    return found
