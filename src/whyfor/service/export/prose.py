"""Words out of a transcript as Markdown or HTML that cannot act.

They are taken apart by a parser and written anew: markup stays markup, everything else is text.
What is written closes what it opens, holds no HTML, loads nothing, and on a forge mentions
nobody, refers to no issue and closes none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from whyfor.model.characters import show_code
from whyfor.model.text import clean, label, one_line, plain

_URL = re.compile(r"https?://[^\s<>\"'`|\\^{}\[\]()]*[^\s<>\"'`|\\^{}\[\]().,;:!?*_~]")
_LINK = re.compile(r"(?:https?://|mailto:)", re.I)
# Forges note such a link on the other side's page, or close it.
_CALLS = re.compile(r"/(?:issues|pull|pulls|merge_requests|work_items|discussions|commit|-)/", re.I)
_SIGIL = re.compile(r"(?<=[@#!%&~^])(?=[\w\"])")  # @name, #12, !12, %milestone, &epic, ~label
_KEY = re.compile(r"\b([A-Z][A-Z0-9_]*-)(?=\d)")  # GH-12, a tracker's ABC-12
_GAP = "\u200b"  # nothing to see, but no reference any more
_MARKUP = re.compile(r"[\\`*\[\]|~$]|!(?=\[|$)|(?<![^\W_])_|_(?![^\W_])")
_ENTITY = {"&": "&amp;", "<": "&lt;", ">": "&gt;", _GAP: "&#8203;"}
# a list, a rule, a heading, a forge's /command
_START = re.compile(r"(?m)^([-+=:/#]|\d{1,9}(?=[.)]))")
_SEPARATOR = re.compile("[\u2028\u2029]")
_HEADING = 5  # ours are above


# -- as Markdown ---------------------------------------------------------------------------------


def inline_text(text: str | None) -> str:
    """Plain text on one line, shown as it is, also where it begins one."""
    return _START.sub(_off, _plain(one_line(text)))


def code_span(text: str) -> str:
    words = label(text)
    run = "`" * (_longest_run(words) + 1)
    pad = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{run}{pad}{words}{pad}{run}" if words else ""


def fenced(text: str, language: str = "") -> str:
    """A block of code that nothing in it can end."""
    words = show_code(text).rstrip("\n")
    run = "`" * max(3, _longest_run(words) + 1)
    return f"{run}{language}\n{words}\n{run}"


def quote_lines(text: str) -> str:
    """What a person typed, line by line; only code is taken as markup."""
    return _prefixed(
        _blocks(SyntaxTreeNode(_typed().parse(plain(text))).children, typed=True), "> ", "> "
    )


def agent_prose(text: str) -> str:
    """What an agent wrote, in its own markup."""
    return _blocks(SyntaxTreeNode(_written().parse(plain(text))).children)


def cell(markdown: str) -> str:
    """For a table: a bar inside code needs its backslash too."""
    return re.sub(r"(?<!\\)\|", r"\\|", markdown)


def _plain(text: str, *, links: bool = True) -> str:
    if not links:
        return _escaped(text)
    pieces, end = [], 0
    for found in _URL.finditer(text):
        pieces += [_escaped(text[end : found.start()]), _url(found[0])]
        end = found.end()
    return "".join([*pieces, _escaped(text[end:])])


def _escaped(text: str) -> str:
    text = _KEY.sub(rf"\1{_GAP}", _SIGIL.sub(_GAP, text))
    text = _MARKUP.sub(lambda found: "\\" + found[0], text)
    return re.sub(rf"[&<>{_GAP}]", lambda found: _ENTITY[found[0]], text)


def _url(address: str) -> str:
    return code_span(address) if _CALLS.search(address) else f"<{address}>"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def _prefixed(text: str, first: str, rest: str) -> str:
    lines = text.split("\n")
    return "\n".join(((rest if at else first) + line).rstrip() for at, line in enumerate(lines))


def _blocks(nodes: Sequence[SyntaxTreeNode], *, typed: bool = False) -> str:
    return "\n\n".join(_block(node, typed) for node in nodes)


def _block(node: SyntaxTreeNode, typed: bool) -> str:
    match node.type:
        case "paragraph":
            return _lines(_inlines(node.children[0].children), typed)
        case "heading":
            return "#" * _HEADING + " " + _inlines(node.children[0].children).replace("\n", " ")
        case "fence" | "code_block":
            return fenced(node.content, "".join(re.findall(r"^[\w+#.-]+", node.info.strip())))
        case "bullet_list" | "ordered_list":
            return _list(node)
        case "blockquote":
            return _prefixed(_blocks(node.children), "> ", "> ")
        case "table":
            return _table(node)
        case "hr":
            return "* * *"
    return _escaped(node.content)


def _lines(text: str, typed: bool) -> str:
    if not typed:
        return _START.sub(_off, text)
    return "\\\n".join(_START.sub(_off, _indented(line)) for line in text.split("\n"))


def _off(start: re.Match[str]) -> str:
    """A number's dot is escaped after it, everything else before it."""
    return start[0] + "\\" if start[0].isdigit() else "\\" + start[0]


def _indented(line: str) -> str:
    words = line.expandtabs(4).lstrip(" ")
    return "&nbsp;" * (len(line.expandtabs(4)) - len(words)) + words


def _list(node: SyntaxTreeNode) -> str:
    number = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
    items = []
    loose = False
    for at, item in enumerate(node.children):
        mark = "- " if number is None else f"{number + at}. "
        loose = loose or any(
            child.type == "paragraph" and not child.hidden for child in item.children
        )
        inside = ("\n\n" if loose else "\n").join(_block(child, False) for child in item.children)
        items.append(_prefixed(inside, mark, " " * len(mark)))
    return ("\n\n" if loose else "\n").join(items)


def _table(node: SyntaxTreeNode) -> str:
    rows = [
        [_cell(cell) for cell in row.children] for part in node.children for row in part.children
    ]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def _cell(node: SyntaxTreeNode) -> str:
    return cell(_inlines(node.children[0].children) if node.children else "")


def _inlines(nodes: Sequence[SyntaxTreeNode], *, links: bool = True) -> str:
    return "".join(_inline(node, links) for node in nodes)


def _inline(node: SyntaxTreeNode, links: bool) -> str:
    match node.type:
        case "text":
            return _plain(node.content, links=links)
        case "code_inline":
            return code_span(node.content)
        case "softbreak":
            return "\n"
        case "hardbreak":
            return "\\\n"
        case "strong" | "em" | "s":
            mark = {"strong": "**", "em": "*", "s": "~~"}[node.type]
            return f"{mark}{_inlines(node.children, links=links)}{mark}"
        case "link":
            return _link(node)
        case "image":
            return _escaped(_image(node.content))
    return _escaped(node.content)


def _image(words: str) -> str:
    return f"[image: {words}]" if words else "[image]"


def _link(node: SyntaxTreeNode) -> str:
    address, words = (
        str(node.attrs.get("href", "")).replace("|", "%7C"),
        _inlines(node.children, links=False),
    )
    if not address:
        return words
    return (
        f"{words} ({code_span(address)})" if _CALLS.search(address) else f"[{words}](<{address}>)"
    )


# -- as HTML -------------------------------------------------------------------------------------


def html(text: str) -> str:
    """What an agent wrote, as HTML; nothing in it is passed through."""
    rendered: str = _written().render(plain(text))
    return rendered


# -- parsers -------------------------------------------------------------------------------------


@cache
def _typed() -> MarkdownIt:
    parser = MarkdownIt("zero").enable(["fence", "backticks"])
    parser.core.ruler.push("hidden", mind_hidden)
    return parser


@cache
def _written() -> MarkdownIt:
    """Tables and strikethrough as the forges have them; what one text defines, no other may use."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.disable(["reference", "html_block", "html_inline"])
    parser.validateLink = lambda url: bool(_LINK.match(url.strip()))  # type: ignore[method-assign]
    parser.core.ruler.push("hidden", mind_hidden)
    parser.add_render_rule("link_open", _link_open)
    parser.add_render_rule(
        "image", lambda _, tokens, index, *__: escape(_image(tokens[index].content))
    )
    parser.add_render_rule("heading_open", lambda *_: f"<h{_HEADING}>")
    parser.add_render_rule("heading_close", lambda *_: f"</h{_HEADING}>\n")
    return parser


def mind_hidden(state: StateCore) -> None:
    """In prose hidden characters are taken out, in code they are named; which is which is known
    after parsing."""
    for token in state.tokens:
        token.info = label(token.info)
        if token.type in ("fence", "code_block"):
            token.content = show_code(token.content)
        for child in token.children or ():
            if child.type == "code_inline":
                child.content = show_code(child.content)
            else:  # a separator in it ends no line of a table
                child.content = clean(_SEPARATOR.sub(" ", child.content))


def _link_open(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    rendered: str = renderer.renderToken(tokens, index, options, env)
    return rendered
