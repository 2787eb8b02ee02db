"""Words of a transcript in a page: they cannot act, nothing of them is lost, and none of them
holds up the page."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser
from pathlib import PurePath

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from markupsafe import Markup
from pygments.lexers import get_all_lexers

from tests.service.export import hostile
from whyfor.model.characters import show_code
from whyfor.model.sessions import Tokens
from whyfor.model.text import clean
from whyfor.server import render, warm

ALLOWED = {
    *(
        "p br strong em s code pre ul ol li blockquote h3 h4 h5 h6 hr table thead tbody tr th td".split()
    ),
    "a",
    "span",
    "mark",
}
LANGUAGES = [
    "python",
    "js",
    "html",
    "json",
    "bash",
    "a/b.tsx",
    "main.go",
    "x.unknown",
    "",
    "<script>",
    "no such",
]


class Read(HTMLParser):
    """What a browser would see: tags, attributes, text; an error for anything that could act."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        for name, value in attrs:
            assert name in ("href", "rel", "class", "start", "tabindex"), (tag, name)
            if name == "href":
                assert re.match(r"(?:https?|mailto):", value or "", re.I), value
            if name == "class":
                assert re.fullmatch(r"k|s|n|c|language-\S*", value or ""), value

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(f"a declaration: {decl}")


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](//evil.example)",
    "[x](file:///etc/passwd)",
    "<javascript:alert(1)>",
    '[x](https://a.example "><script>alert(1)</script>)',
    "![x](https://evil.example/pixel.png)",
    "![x](javascript:alert(1))",
    "```html\n<script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    "`<script>`",
    "<!-- comment -->",
    "<![CDATA[x]]>",
    "<svg/onload=alert(1)>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;",
    "\x1b]8;;javascript:alert(1)\x07click\x1b]8;;\x07",
    "</p></div></main><h1>mine</h1>",
    "<base href=//evil.example>",
    "<style>*{display:none}</style>",
    "| a |\n|---|\n| <script>x</script> |",
    "# <img src=x onerror=alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    "[a]: javascript:alert(1)\n\n[a]",
    "\u202etxt.exe",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_a_text_acts(text: str) -> None:
    for made in (
        render.render_prose(text),
        render.typed(text),
        render.render_marked(text, [(0, 3), (2, 5)]),
        render.render_inline(text),
    ):
        assert isinstance(made, Markup)
        Read(str(made))
    for language in LANGUAGES:
        Read(str(render.highlight(text, language)))
    assert "javascript:" not in re.sub(r">[^<]*<", "><", str(render.render_prose(text)))


def test_the_hostile_texts_of_the_export_do_not_act_either() -> None:
    texts = [value for value in vars(hostile).values() if isinstance(value, str)]
    lists = [value for value in vars(hostile).values() if isinstance(value, list | tuple)]
    found = [*texts, *(item for each in lists for item in each if isinstance(item, str))]
    assert found
    for text in found:
        Read(str(render.render_prose(text)))


@hypothesis_settings(max_examples=100, deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=200), st.sampled_from(LANGUAGES))
def test_no_text_is_lost_or_becomes_markup(text: str, language: str) -> None:
    Read(str(render.render_prose(text)))
    shown = render.render_lines(text, language)
    assert [Read(str(line)).text for line in shown] == show_code(text).removesuffix("\n").split(
        "\n"
    )
    assert Read(str(render.render_marked(text, [(1, 4)]))).text == clean(text[:1]) + clean(
        text[1:4]
    ) + clean(text[4:])


def test_languages_give_back_what_it_got() -> None:
    code = 'def f(x):\n\t"""Say <b>&amp;</b>."""\n    return x  # done\n\n\n<?php /* open\n{{ x }} \'a\n'
    for _, (name, *_), _, _ in [each for each in get_all_lexers() if each[1]][::15]:
        shown = render.render_lines(code, name)
        assert [Read(str(line)).text for line in shown] == code.removesuffix("\n").split("\n"), name


def test_code_has_four_colours() -> None:
    code = "# why\nimport os\n@cache\ndef name(x: int) -> str:\n    return 'text' + 12\n"
    classes = set(re.findall(r'class="(\w+)"', str(render.highlight(code, "python"))))
    assert classes == {"k", "s", "n", "c"}
    assert "<span" in str(render.render_prose(f"```python\n{code}```"))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 50_000,
        "![[" * 30_000,
        "*a_ " * 50_000,
        "> " * 20_000,
        "|a" * 9000 + "\n" + "|-" * 9000,
        "1.e" * 30_000,
    ],
    ids=["brackets", "pictures", "stars", "quotes", "table", "numbers"],
)
def test_a_text_made_to_be_slow_is_shown_plain(text: str) -> None:
    """Against seconds, minutes: what is asked here is not how fast, but that it ends."""
    begun = time.process_time()
    render.render_prose(text)
    for language in ("js", "python", "html"):
        render.render_lines(text, language)
        render.render_lines("\n".join([text[:900]] * 30), language)
    assert time.process_time() - begun < 10


def test_ages_numbers_and_durations_are_said_as_the_design_says() -> None:
    now = 1_763_251_200.0  # a Sunday noon or midnight somewhere; only differences count
    assert render.render_age(int(now * 1000) - 2000, now) == "2 s"
    assert render.render_age(int(now * 1000) - 6 * 60_000, now) == "6 min"
    assert render.render_age(None) == "unknown"
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d", render.render_age(int(now * 1000) - 10 * 86_400_000, now)
    )
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d", render.render_age(int(now * 1000) + 10 * 86_400_000, now)
    )
    assert render.render_duration(252_000) == "4 min 12 s"
    assert render.render_duration(3_720_000) == "1 h 02 min"
    assert render.render_duration(None) == "unknown"
    assert render.render_tokens(Tokens()) == "tokens unknown"
    assert (
        render.render_tokens(Tokens(input=100, cache_read=147_900, output=611))
        == "148k in, 611 out"
    )
    assert render.render_project("github.com/acme/checkout") == "acme/checkout"
    assert render.render_project("/home/ada/code/shop") == "shop"
    assert render.render_project("git:0123456789abcdef") == "unnamed repository"
    assert render.render_project(None) == "no project"
    home = PurePath("/home/ada")
    for path, said in {
        "/home/ada/code/shop": "~/code/shop",
        "/home/ada": "~",
        "/home/adam": "/home/adam",
    }.items():
        assert render.home_path(path, home) == said
    assert render.home_path(None, home) == ""


def test_a_template_escapes_by_default_and_misses_nothing() -> None:
    from jinja2 import UndefinedError

    environment = render.environment()
    assert environment.from_string("{{ x }}").render(x="<b>") == "&lt;b&gt;"
    with pytest.raises(UndefinedError):
        environment.from_string("{{ nowhere }}").render()
    sources = [
        path.read_text(encoding="utf-8") for path in (render.WEB / "templates").rglob("*.html")
    ]
    for source in sources:
        assert not re.search(
            r"\|\s*safe\b|autoescape|<script(?![^>]*src=)|<style|\sstyle=|\son\w+=|javascript:",
            source,
        )


def test_what_is_made_ready_beforehand_is_there() -> None:
    assert {*warm.FIRST} <= {*render.environment().list_templates()}
    assert all(
        "<span" in render.highlight("if x: 1 // y\n", language)
        for language in ("x.py", "x.ts", "bash")
    )
