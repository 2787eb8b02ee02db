"""English-like text over a vocabulary of our own, drawn with Zipf's law."""

from __future__ import annotations

from itertools import accumulate
from random import Random

# The words the benchmark searches for. RARE is in exactly three sessions and in no vocabulary;
# COMMON is a frequent word; PHRASE holds COMMON so that a phrase query has a long posting list to
# walk; PREFIX starts a small family of words.
RARE = "zephyrquartz"
COMMON = "pipeline"
PHRASE = "pipeline retry budget"
PREFIX = "thermo"

_FAMILY = [
    PREFIX + tail for tail in ("stat", "cline", "graph", "meter", "pile", "couple", "plastic")
]

_FUNCTION_WORDS = """
the to a of and in is it for that this with on as be not are so we but can from if or by an when at has will
which then now all only one its also should have was into no there does each before after same other than
more still just because where both first need use out up how what any new let me here without been two next
once while between they
"""

_STEMS = """
abort accept access adapt alias align alloc anchor append array assert assign async attach audit backup
balance batch bind block board boot bound branch bridge broker browse bucket budget buffer build bundle
cache call cancel capture catch chain channel check chunk claim class clean client clock clone close cluster
code collect column combine commit compact compare compile compose concat config connect consume context
convert copy count crash create cursor custom daemon data debug decode default defer delete deploy derive
detect device digest direct discover dispatch display domain drain draft drift driver drop dump edge edit
emit encode engine enqueue entry error escape event exact execute expand expect expire export extend extract
factor fail fallback fetch field file filter finish flag flatten flush fold format forward frame freeze
function garbage gate gather generate global grant graph group guard handle harness hash header health heap
hint history hook host hydrate image import index infer inherit init inject input insert inspect install
instance intent invoke isolate item iterate join journal kernel label latch launch layer layout lease level
limit link list listen load local lock log logic loop manage manifest map mark mask match measure member
memory merge message method metric migrate mirror model module monitor mount move mutate name native nest
node normal notify null object observe offset open option order origin output owner pack packet page parent
parse partial patch path pattern pause payload peer permit pipe plan plugin point policy pool port prefix
prepare preset print probe process produce profile project promise prompt proof protect provide proxy prune
publish pull purge push quarantine query queue quota range rank reader record recover redirect reduce
refactor refresh region register reject relay release remote render repair repeat replace reply report
request reserve reset resolve resource response restart restore result resume retry return reveal review
revert rewrite ring roll root rotate route row rule runtime sample sandbox scan schedule schema scope script
search seal section secret segment select sequence serial server service session shard shell shift signal
sketch slice slot snapshot socket sort source span spawn split spool stack stage stale state static status
step store stream strict string struct submit subset suffix summary swap switch symbol sync syntax system
table tag target task template tenant test thread throttle timer token tool topic trace track transform
transit traverse tree trigger trim tuple type union update upload validate value vault vector verify version
view visit volume wait walk watch weight widget window wire worker wrap write yield zone
"""

_SUFFIXES = " s ing ed er able ers less ment ness ive wise like ful ion"
_PREFIXES = ["", "re", "un", "pre", "sub"]
_VOCABULARY_SIZE = 8000


def _join(prefix: str, stem: str, suffix: str) -> str:
    base = stem[:-1] if suffix[:1] in {"e", "i", "a"} and stem.endswith("e") else stem
    return prefix + base + suffix


def _vocabulary() -> list[str]:
    """Most frequent first: function words, then plain stems, then everything derived from them."""
    function_words, stems = _FUNCTION_WORDS.split(), _STEMS.split()
    derived = [_join(p, stem, s) for p in _PREFIXES for s in _SUFFIXES.split(" ") for stem in stems]
    plain, rest = derived[: len(stems)], derived[len(stems) :]
    shuffle = Random("vocabulary").shuffle
    shuffle(plain)
    shuffle(rest)
    frequent = [*function_words[:40], COMMON, *function_words[40:], *plain[:300]]
    return list(dict.fromkeys([*frequent, *_FAMILY, *plain[300:], *rest]))[:_VOCABULARY_SIZE]


WORDS = _vocabulary()
_CUMULATIVE = list(accumulate(1 / (rank + 3) for rank in range(len(WORDS))))


class Prose:
    """Text of one session; identifiers and paths of its project appear among the words."""

    def __init__(self, rng: Random, names: list[str]) -> None:
        self._rng = rng
        self._names = names

    def words(self, count: int) -> list[str]:
        return self._rng.choices(WORDS, cum_weights=_CUMULATIVE, k=count)

    def title(self) -> str:
        return " ".join(self.words(self._rng.randint(3, 7))).capitalize()

    def text(self, characters: int) -> str:
        """About that many characters of sentences, some with an identifier in backticks."""
        words = self.words(max(3, characters // 7))
        start = 0
        sentences: list[str] = []
        while start < len(words):
            end = start + self._rng.randint(6, 20)
            sentence = words[start:end]
            if self._rng.random() < 0.3:
                sentence[len(sentence) // 2] = f"`{self._rng.choice(self._names)}`"
            sentence[0] = sentence[0].capitalize()
            if self._rng.random() < 0.15:
                sentence[-1] = f"— {sentence[-1]}"
            sentences.append(" ".join(sentence) + ".")
            start = end
        return " ".join(sentences)

    def answer(self, characters: int) -> str:
        """Markdown as agents write it: paragraphs, and in longer ones a heading with bullets."""
        if characters < 400:
            return self.text(characters)
        bullets = "\n".join(f"- **{self.title()}**: {self.text(characters // 8)}" for _ in range(4))
        return (
            f"{self.text(characters // 3)}\n\n## "
            f"{self.title()}\n\n{bullets}\n\n{self.text(characters // 6)}"
        )
