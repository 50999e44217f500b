"""The pictures of a built page: links to themselves, since letters are small where a picture is as wide as the page;
with their size, so that the page keeps their place while they load; those of a notebook with the words that it has
saved, which MyST-NB leaves out."""

import base64
import hashlib
import json
import re
import struct
from collections.abc import Mapping
from html import escape
from pathlib import Path

_SHOWN = re.compile(r'(<a [^>]*>)?<img alt="([^"]*)" src="([^"]*_images/([^"/]+\.png))" />')


def words_of(notebook: Path) -> dict[str, str]:
    """By the name that MyST-NB gives the picture's file."""
    found = {}
    for cell in json.loads(notebook.read_text())["cells"]:
        for output in cell.get("outputs", []):
            words = output.get("metadata", {}).get("image/png", {}).get("alt")
            if words:
                content = base64.b64decode("".join(output["data"]["image/png"]))
                found[f"{hashlib.sha256(content).hexdigest()}.png"] = words
    return found


def _size(file: Path) -> tuple[int, int]:
    """Width and height of a PNG."""
    with file.open("rb") as opened:
        return struct.unpack(">II", opened.read(24)[16:])


def dress(body: str, files: Mapping[str, Path], words: Mapping[str, str]) -> str:
    """The page's text with what its pictures lack. files, words: by name. What is a link already stays one."""

    def dressed(found: re.Match) -> str:
        link, own_words, address, name = found.groups()
        if link or name not in files:
            return found[0]
        width, height = _size(files[name])
        size = f'width="{width}" height="{height}" style="--ratio: {width / height:.4f}"'
        told = escape(words[name]) if name in words else own_words
        return (
            f'<a class="picture" href="{address}" title="The picture in its full size">'
            f'<img alt="{told}" src="{address}" {size} /></a>'
        )

    return _SHOWN.sub(dressed, body)
