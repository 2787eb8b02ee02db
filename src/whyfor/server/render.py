"""Filters for templates: transcript text made safe, highlighted code, ages and numbers in words."""

from __future__ import annotations

import re
import time
import unicodedata
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path, PurePath
from typing import Any

import nh3
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup, escape
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import Comment, Keyword, Literal, Name, Operator
from pygments.util import ClassNotFound

from whyfor.live.project_names import ProjectNames
from whyfor.model.characters import show_code, show_hidden, split_code
from whyfor.model.cost import Cost, cost_of, cost_text, dollars, short_cost
from whyfor.model.ids import short_id
from whyfor.model.paths import is_whole_path, to_text
from whyfor.model.sessions import Tokens
from whyfor.model.text import clean, count, label, one_line, plain, plural
from whyfor.model.times import to_iso
from whyfor.service.agents import agent_mark, agent_title
from whyfor.service.export.prose import mind_hidden

WEB = Path(__file__).parent.parent / "web"
STATUS = {
    "running": "Running",
    "waiting_approval": "Needs approval",
    "waiting": "Waiting for you",
    "idle": "Idle",
    "exited": "Exited",
    "unknown": "Unknown",
}
_COMMAND = re.compile(r"\b((?:whyfor|git) [a-z][\w-]*(?: --?[a-z][\w-]*| [A-Z]+\b)*)")
# Characters; more is shown plain. Neither parser is linear, and a transcript may be made to hold up
# a page.
_PROSE = 40_000
_COLOURED = 30_000
_COLOURED_LINE = 1000
_TAGS = set(
    "p br strong em s code pre ul ol li blockquote h3 h4 h5 h6 hr table thead tbody tr th "
    "td a span".split()
)
_LINK = re.compile(r"(?:https?://|mailto:)", re.I)
# Of Pygments' many kinds of tokens four are told apart; the first that holds a token wins.
_CLASSES = (
    (Comment, "c"),
    (Keyword, "k"),
    (Operator.Word, "k"),
    (Literal, "s"),
    (Name.Function, "n"),
    (Name.Class, "n"),
    (Name.Decorator, "n"),
    (Name.Namespace, "n"),
    (Name.Tag, "n"),
    (Name.Attribute, "n"),
)


def environment(names: ProjectNames | None = None) -> Environment:
    """Return the template environment. Everything is escaped, and an undefined name is an error."""
    made = Environment(
        loader=FileSystemLoader(WEB / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "age": render_age,
        "ago": ago,
        "at_home": home_path,
        "agent_mark": agent_mark,
        "agent_title": agent_title,
        "clean": clean,
        "clock": clock,
        "count": count,
        "day": day,
        "dollars": dollars,
        "duration": render_duration,
        "exact": render_exact,
        "held": render_since,
        "highlight": highlight,
        "hinted": hinted,
        "inline": render_inline,
        "iso": to_iso,
        "label": label,
        "lines": render_lines,
        "marked": render_marked,
        "moment": render_moment,
        "one_line": one_line,
        "plural": plural,
        "price": lambda cost: "no price" if cost.usd is None else short_cost(cost),
        "price_words": cost_text,
        "priced": lambda tokens: render_price(cost_of(tokens)),
        "project": lambda identity: render_project(identity, names),
        "prose": render_prose,
        "short_id": short_id,
        "spent": render_tokens,
        "status_word": lambda status: STATUS.get(status, status),
        "took": took,
        "typed": typed,
        "used": used,
        "verbatim": verbatim,
    }
    return made


def _shown(value: Any) -> Any:
    """Show hidden characters in every string a template outputs, so that no filter can be
    forgotten."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return show_hidden(value)
    return value


def verbatim(value: str) -> Markup:
    """Return a value that the browser sends back, such as an option's: escaped, otherwise
    unchanged."""
    return escape(value)


# -- words ---------------------------------------------------------------------------------------


def render_prose(text: str | None) -> Markup:
    """Return an agent's Markdown as HTML: parsed without HTML, then sanitised."""
    if len(text or "") > _PROSE:
        return typed(text)
    rendered: str = _parser().render(plain(text or ""))
    return Markup(
        nh3.clean(
            rendered,
            tags=_TAGS,
            attributes={"a": {"href"}, "code": {"class"}, "span": {"class"}, "ol": {"start"}},
            url_schemes={"http", "https", "mailto"},
            link_rel="noopener noreferrer nofollow",
            set_tag_attribute_values={"pre": {"tabindex": "0"}},  # it scrolls: keys must reach it
        )
    )


def typed(text: str | None) -> Markup:
    """Return a person's text unchanged, line by line."""
    paragraphs = re.split(r"\n{2,}", clean(text or "").strip("\n"))
    return Markup("\n").join(
        Markup("<p>{}</p>").format(Markup("<br>").join(paragraph.split("\n")))
        for paragraph in paragraphs
    )


def render_inline(text: str) -> Markup:
    """Return one line cut from an agent's Markdown: code stays code, other marks are removed."""
    parts = one_line(text).split("`")
    if len(parts) % 2 == 0:  # a last one without its partner is a character
        parts[-2:] = ["`".join(parts[-2:])]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part.replace("**", ""))
        for at, part in enumerate(parts)
    )


def hinted(text: str) -> Markup:
    """Return a hint with its command as code."""
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part)
        for at, part in enumerate(_COMMAND.split(clean(text)))
    )


def render_exact(text: str) -> Markup:
    """Return text that a person has to judge: nothing is hidden, moved or removed; invisible
    characters are named."""
    return Markup("").join(
        Markup('<span class="unseen" title="{}">U+{:04X}</span>').format(_name(piece), ord(piece))
        if hidden
        else escape(piece)
        for piece, hidden in split_code(text)
    )


def _name(character: str) -> str:
    return unicodedata.name(character, "a control character").lower()


def render_marked(snippet: str, marks: list[tuple[int, int]]) -> Markup:
    """Return a snippet with the searched words in <mark>."""
    parts, at = [], 0
    for start, end in marks:
        if start >= at:
            parts += [
                escape(clean(snippet[at:start])),
                Markup("<mark>{}</mark>").format(clean(snippet[start:end])),
            ]
            at = end
    return Markup("").join([*parts, escape(clean(snippet[at:]))])


@cache
def _parser() -> MarkdownIt:
    """Return the Markdown parser. Link definitions of one text do not reach another; images are
    named, not loaded."""
    options: dict[str, Any] = {"html": False, "highlight": _fence}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    parser.disable(["reference", "html_block", "html_inline"])
    parser.validateLink = lambda url: bool(_LINK.match(url.strip()))  # type: ignore[method-assign]
    parser.core.ruler.push("hidden", mind_hidden)
    parser.add_render_rule(
        "image", lambda _, tokens, index, *__: str(escape(_picture(tokens[index].content)))
    )
    parser.add_render_rule("heading_open", lambda *_: "<h4>")
    parser.add_render_rule("heading_close", lambda *_: "</h4>\n")
    return parser


def _fence(code: str, language: str, _: str) -> str:
    return str(highlight(code, language))


def _picture(words: str) -> str:
    return f"[image: {words}]" if words else "[image]"


# -- code ----------------------------------------------------------------------------------------


def highlight(code: str, language: str = "") -> Markup:
    """Return highlighted code; the language is given by its name or by a file's name."""
    return Markup("\n").join(render_lines(code, language)) + Markup(
        "\n" if code.endswith("\n") else ""
    )


def render_lines(code: str, language: str = "") -> list[Markup]:
    """Return highlighted code line by line, for diffs: a token over several lines is highlighted on
    each."""
    code = show_code(code)
    bare = code.removesuffix("\n").split("\n")
    lexer = _lexer(language)
    if lexer is None or len(code) > _COLOURED or any(len(line) > _COLOURED_LINE for line in bare):
        return [escape(line) for line in bare]
    tokens = list(lexer.get_tokens(code))
    if "".join(value for _, value in tokens).removesuffix("\n") != code.removesuffix("\n"):
        return [escape(line) for line in bare]  # some of them do not give back what they got
    found: list[list[Markup]] = [[]]
    for kind, value in tokens:
        for at, piece in enumerate(value.split("\n")):
            if at:
                found.append([])
            if piece:
                found[-1].append(_coloured(kind, piece))
    made = [Markup("").join(pieces) for pieces in found]
    return made[: len(bare)]


def _coloured(kind: Any, text: str) -> Markup:
    name = _class(kind)
    return Markup(f'<span class="{name}">{escape(text)}</span>') if name else escape(text)


@cache
def _class(kind: Any) -> str | None:
    return next((name for holder, name in _CLASSES if kind in holder), None)


@lru_cache(200)
def _lexer(language: str) -> Any:
    if not 0 < len(language) <= 200:
        return None
    options: dict[str, Any] = {"stripnl": False, "ensurenl": False}
    try:
        if "." in language or "/" in language:
            return get_lexer_for_filename(language.rsplit("/", 1)[-1], **options)
        return get_lexer_by_name(language, **options)
    except ClassNotFound:
        return None


# -- numbers and times ---------------------------------------------------------------------------


def render_age(millis: int | None, now: float | None = None) -> str:
    """2 s, 6 min, 3 h, yesterday, then the date."""
    if millis is None:
        return "unknown"
    today = datetime.fromtimestamp(time.time() if now is None else now)
    when = datetime.fromtimestamp(millis / 1000)
    seconds = int((today - when).total_seconds())
    if 0 <= seconds < 3600:
        return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min"
    if seconds >= 0 and when.date() == today.date():
        return f"{seconds // 3600} h"
    if (today.date() - when.date()).days == 1:
        return "yesterday"
    return when.strftime("%Y-%m-%d")


def ago(millis: int | None) -> str:
    """The same in a sentence."""
    if millis is not None and 0 <= time.time() * 1000 - millis < 2000:
        return "now"
    told = render_age(millis)
    return f"{told} ago" if told.endswith((" s", " min", " h")) else told


def render_since(millis: int) -> str:
    """How long something has been so."""
    return f"for {took(millis)}"


def took(millis: int) -> str:
    """Return the time from then until now, in words."""
    return render_duration(int(time.time() * 1000) - millis)


def render_moment(millis: int | None) -> str:
    return (
        datetime.fromtimestamp(millis / 1000).strftime("%Y-%m-%d %H:%M:%S") if millis else "unknown"
    )


def clock(millis: int | None) -> str:
    return datetime.fromtimestamp(millis / 1000).strftime("%H:%M") if millis else "–"


def day(millis: int | None) -> str:
    return datetime.fromtimestamp(millis / 1000).strftime("%Y-%m-%d") if millis else "unknown"


def render_duration(millis: int | None) -> str:
    """4 min 12 s."""
    if millis is None:
        return "unknown"
    seconds = max(0, millis // 1000)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"


def render_tokens(tokens: Tokens) -> str:
    """In and out, cache counted as in; never a silent zero."""
    known = [
        value
        for value in (tokens.input, tokens.cache_read, tokens.cache_write)
        if value is not None
    ]
    if not known and tokens.output is None:
        return "tokens unknown"
    return f"{count(sum(known)) if known else '?'} in, {count(tokens.output)} out"


def render_price(cost: Cost) -> str:
    """Dollars at list price, or that it is unknown."""
    return "price unknown" if cost.usd is None else cost_text(cost)


def used(tokens: Tokens) -> str:
    """Return all tokens as one number."""
    known = [tokens.input, tokens.cache_read, tokens.cache_write, tokens.output]
    total = sum(value for value in known if value is not None)
    return (
        f"{count(total)} tokens" if any(value is not None for value in known) else "tokens unknown"
    )


def home_path(path: str | None, home: PurePath) -> str:
    """Return a path with `~` for the home directory."""
    place, own = PurePath(path or ""), to_text(home)
    return str("~" / place.relative_to(own)) if place.is_relative_to(own) else path or ""


def render_project(identity: str | None, names: ProjectNames | None = None) -> str:
    """Return a project's short name: owner and name of a remote, or the last part of a path."""
    if not identity:
        return "no project"
    if identity.startswith("git:"):
        return (names and names(identity)) or "unnamed repository"
    parts = [part for part in re.split(r"[/\\]", identity) if part]
    is_remote = len(parts) > 2 and not is_whole_path(identity)
    return "/".join(parts[-2:] if is_remote else parts[-1:]) or identity
