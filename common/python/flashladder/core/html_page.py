"""A page for people that is one file: its pictures lie inside, it loads nothing and runs nothing."""

import base64
from collections.abc import Iterable, Sequence
from html import escape

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse } td, th { border: 1px solid #ccc; padding: .3rem .6rem; text-align: left }
td.points, td.figure { text-align: right; white-space: nowrap }
pre { background: #f4f4f4; padding: .6rem; overflow-x: auto; white-space: pre-wrap }
img { max-width: 100% } .lost { color: #a33d00; font-weight: 600 }
""".strip()


def page(title: str, body: Iterable[str]) -> str:
    """title: as text; body: as HTML."""
    head = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style></head><body>",
    ]
    return "\n".join([*head, *body, "</body></html>"]) + "\n"


def picture(words: str, png: bytes) -> str:
    data = base64.b64encode(png).decode()
    return f'<figure><img alt="{escape(words)}" src="data:image/png;base64,{data}"></figure>'


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """All but the first column are figures."""
    lines = [f"<tr>{''.join(f'<th>{escape(one)}</th>' for one in columns)}</tr>"]
    for first, *others in rows:
        cells = "".join(f"<td class=figure>{escape(one)}</td>" for one in others)
        lines.append(f"<tr><td>{escape(first)}</td>{cells}</tr>")
    return "\n".join(["<table>", *lines, "</table>"])
