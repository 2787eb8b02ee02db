"""The page for refused requests. It needs no other file, because without a key there is no style
sheet either."""

from __future__ import annotations

import base64
from hashlib import sha256
from html import escape

from whyfor.server.render import hinted

STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; padding: 96px 16px; color: light-dark(#434c58, #b4bcc7); background: light-dark(#f7f8fa, #0e1115);
  font: 13px/20px -apple-system, BlinkMacSystemFont, "Segoe UI", Cantarell, Ubuntu, Roboto, system-ui, sans-serif; }
main { max-width: 420px; margin: 0 auto; padding: 32px 24px; text-align: center; overflow-wrap: anywhere;
  background: light-dark(#ffffff, #15191f); border: 1px solid light-dark(#e1e5ea, #272e38); border-radius: 8px; }
h1 { margin: 0 0 4px; font-size: 16px; line-height: 24px; color: light-dark(#181d24, #e8ebf0); }
p { margin: 0 0 4px; }
code { font: 12.5px/20px ui-monospace, SFMono-Regular, Menlo, "Cascadia Mono", "DejaVu Sans Mono", monospace; }
"""
SOURCE = (
    # what the policy lets in, by its hash
    f"'sha256-{base64.b64encode(sha256(STYLE.encode()).digest()).decode()}'"
)
_TITLES = {
    401: "This page needs a link",
    403: "Another site may not ask",
    421: "This server is not called that",
}


def refused(status: int, phrase: str, detail: str, hint: str) -> bytes:
    title = escape(_TITLES.get(status, phrase))
    said = f"{detail[:1].upper()}{detail[1:]}."
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title} · Whyfor</title><style>{STYLE}</style></head>"
        f"<body><main><h1>{title}</h1><p>{escape(said)}</p><p>{hinted(hint)}</p></main></body></html>\n"
    ).encode()
