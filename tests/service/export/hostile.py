"""Words that try to act, and what finds out whether they can."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from markdown_it.token import Token

PAYLOADS = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "<iframe src=javascript:alert(1)>",
    "[click](javascript:alert(1)) <javascript:alert(1)>",
    "[x](data:text/html;base64,PHNjcmlwdD4=) [y](vbscript:x) [z](JaVaScRiPt:alert(1))",
    "![x](http://track.example/pixel.png) ![](//evil.example)",
    "</title></style><style>@import 'http://evil.example'</style>",
    "</details></article></main></body><h1>out</h1>",
    "<!-- --> <![CDATA[ <?php",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#60;script&#62;",
    "```\n<script>alert(1)</script>\n",
    '[a](https://e.example/"onmouseover="alert(1))',
    '```"onclick=alert(1)\ncode\n```',
    "\x1b[31mred\x1b[0m \x00 \u202e",
)
ALL = "\n\n".join(PAYLOADS)
# What a forge's parser sees: HTML allowed, tables and strikethrough on.
FORGE = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])

_VOID = {"meta", "br", "hr"}
_ALLOWED_TAGS = set(
    "html head meta title style body main nav section article header footer h1 h2 h5 p ul ol li dl "
    "dt dd div span a b "
    "strong em s code pre blockquote table thead tbody tr th td details summary br hr".split()
)
_ALLOWED_ATTRIBUTES = {
    *(
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "id",
        "href",
        "rel",
        "style",
        "title",
        "start",
    )
}


class Page(HTMLParser):
    """What a browser would make of a page: every tag, every attribute, and whether they close as
    they opened."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.styles: list[str] = []
        self.words: list[str] = []
        self.problems: list[str] = []
        self.feed(text)
        self.close()
        self.problems += [f"never closed: {tag}" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in _VOID:
            self.open.append(tag)
        self.problems += [] if tag in _ALLOWED_TAGS else [f"tag {tag}"]
        for name, value in attrs:
            self.problems += [] if name in _ALLOWED_ATTRIBUTES else [f"{tag} {name}={value}"]
            if name == "href":
                self.links.append(value or "")
            if name == "style":
                self.styles.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        if not self.open or self.open[-1] != tag:
            self.problems.append(f"{tag} closes {self.open[-1:]}")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_comment(self, data: str) -> None:
        self.problems.append(f"comment {data}")

    def handle_pi(self, data: str) -> None:
        self.problems.append(f"instruction {data}")

    def unknown_decl(self, data: str) -> None:
        self.problems.append(f"declaration {data}")


def tokens(markdown: str) -> Iterator[Token]:
    for token in FORGE.parse(markdown):
        yield token
        yield from token.children or []


def shown(markdown: str) -> str:
    """The text a reader sees outside code and bare addresses, where forges look for names and
    numbers."""
    found, address = [], False
    for token in tokens(markdown):
        if token.type in ("link_open", "link_close"):
            address = token.type == "link_open" and token.markup == "autolink"
        if token.type == "text" and not address:
            found.append(token.content)
    return "\n".join(found)


def outside_code(markdown: str) -> list[str]:
    lines = markdown.split("\n")
    for token in FORGE.parse(markdown):
        if token.type in ("fence", "code_block") and token.map:
            lines[token.map[0] : token.map[1]] = [""] * (token.map[1] - token.map[0])
    return lines
