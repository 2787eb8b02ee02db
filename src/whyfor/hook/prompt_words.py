"""The words of a prompt that may say what a note is about, and how much of a note they name: asked
by an ingest, which writes the notes' words down, and by the hook, which reads them.

Imports nothing: a regular expression would cost the hook more than all the rest.
"""

PROMPT_MAX = 4_000  # characters of a prompt that are looked at
NOTES_MAX = 3  # that one prompt is told of
_SHORTEST = 3
_STRONG = 6  # of a score: a name and another word, or three rare words
_STEM_MIN = 4
_ENDINGS = ("ing", "ed", "es", "s")
# Words that stand in any request to write code, and in any note: they name nothing.
_COMMON = frozenset(
    (
        "the and for are was were been being this that these those with without from into onto its"
        " have has had does did done doing will would should could must may might can cannot not"
        " but you your they them their our out who what when where which why how all any some each"
        " every both more most less few other another such only also just than then there here now"
        " again still even very much many one two three first last next new old same own let make"
        " made want need like know think see look say said tell told give get got set put take use"
        " used using try please thanks sure okay yes add added change changed update updated remove"
        " removed delete create created write written read fix fixed run ran running start started"
        " stop work works working fail fails failed failing pass passes passed error errors issue"
        " issues problem problems bug bugs wrong right because cause caused root due file files"
        " folder directory code line lines function functions method class test tests testing check"
        " checks build builds commit commits branch push pull merge repo repository project change"
        " command commands script option options value values name names thing things way case part"
        " time now before after while until since between above below user users agent agents model"
        " session sessions app page pages data type types call calls called return returns show"
        " shows shown find found implement implementation plan step steps task tasks todo review"
        " feature support supports default current existing instead actually already currently"
        " http https www com org net github gitlab pull valid comment comments never real full"
        " src lib libs app apps bin docs doc spec specs component components frontend backend"
        " server client common shared util utils helper helpers index main package json yaml toml"
        " html css tsx jsx config configuration output input result results list view text detail"
        " details"
        " needs doesn don isn wasn won didn aren couldn true false null none have been able about"
    ).split()
)


def words_in(text: str) -> "set[str]":
    """Return the words of a text that name something, in one form for all their endings: also the
    parts of a name, `read_prices` or `readPrices`."""
    found = set()
    for run in _runs(text[:PROMPT_MAX]):
        whole = run.casefold()
        found.add(whole)
        parts = _parts(run)
        if len(parts) > 1:
            found.update(parts)
    return {stem_word(word) for word in found if len(word) >= _SHORTEST and word not in _COMMON}


def is_strong(score: int, matched: int, prompt: int) -> bool:
    """Return whether a prompt of so many words is about a note: `matched` words of both, and the
    `score` that the note gives for them."""
    return matched >= 2 and score >= max(_STRONG, prompt // 5)


def _runs(text: str) -> "list[str]":
    """Return the words and names of a text."""
    kept = "".join([c if c.isalnum() or c == "_" else " " for c in text])
    return kept.split()


def _parts(run: str) -> "list[str]":
    """Return the parts of a name, in small letters."""
    spaced = []
    before = ""
    for character in run:
        if character.isupper() and before.islower():
            spaced.append(" ")
        spaced.append(" " if character == "_" else character)
        before = character
    return "".join(spaced).casefold().split()


def stem_word(word: str) -> str:
    """Return a word without its ending, the same for `cache`, `caches` and `caching`."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _STEM_MIN:
            word = word[: -len(ending)]
            break
    return word[:-1] if word.endswith("e") and len(word) > _STEM_MIN else word
