"""Why a target is missed, by the name of its check; printed under the table only while it is."""

_RAW = (
    "decoding is an eighth to a sixth of the work: each byte is also hashed, compressed and "
    "synced, and its words are "
    "indexed, in a process that pays 60 ms of imports first. Tool results, indexed in full, are "
    "the largest part."
)
_SHELL = (
    "at the limit: a shell hook that does nothing at all is at 1.25× already, and on two busy "
    "cores the interpreter in "
    "the background takes time from the next commit."
)
_START = (
    "nearly all of it is Python starting and importing (60 ms of CPU); the work itself takes 10 to "
    "20 ms. "
    "A tenth of a compiled program's time is less than a Python interpreter needs to start."
)

_LARGE = (
    "git alone takes 1.5 to 2 s to show a thousand commits of 800 lines. The files of most commits "
    "were written by a session within thirty days, so they are read; of those that hold a "
    "session's lines each line is compared, and of those that got a story each line is traced to "
    "the turn that wrote it."
)

_OWN = (
    "its commits add 700 lines each, and git alone takes 1.3 s to show a thousand of them. There "
    "are some 400: of so few the start of Python is another 0.4 s per 1,000. The rest is a key for "
    "each line, and for a commit that got a story the replay of every edit."
)

REASONS: dict[str, str] = {
    "an agent's ingest per MB, against Claude Code's": "OpenHands writes one file per event, and "
    "each file is stored, synchronised and registered by itself; every other agent keeps the limit.",
    "linking, own repository, 5 %: CPU per 1,000 commits": _OWN,
    "linking, own repository, 30 %: CPU per 1,000 commits": _OWN,
    "linking, large commits: CPU per 1,000 commits": _LARGE,
    "lines, people touch agents' lines: agent or not": (
        "an earlier run, under Python 3.11.2, had 1; under 3.11.7 it is this, before and after the "
        "last change of the replay. The cause of the difference was not looked for."
    ),
    "blame of 2,000 lines, warm CPU / git blame": (
        "git blames a file of this length in 20 ms, and Python needs 60 ms to start and 40 ms to "
        "import what reads the store. In a process that runs already the rest is in its own row."
    ),
    "the same in a running process / git blame": (
        "git's own run is a third of it. The rest is nine short runs of git that find the file, "
        "the repository and stories beside the branch, and 20 ms of ours for 2,000 lines."
    ),
    "why, warm CPU": (
        "at the limit: 100 ms are Python and its imports, the rest is six short runs of git. On a "
        "busy machine single runs vary by a third."
    ),
    "generated: first ingest CPU / raw decode": _RAW,
    "corpus: first ingest CPU / raw decode": _RAW,
    "generated: first ingest CPU / agentsview's best": "at the limit: single runs on a shared machine vary by a tenth.",
    "corpus: first ingest CPU / agentsview's best": (
        "half of it is Python's own: records become events, events rows, and notes and cards are "
        "made of what was read. SQLite with its index of words takes a sixth, the kernel as much."
    ),
    "generated: no-op ingest CPU / agentsview's": _START,
    "corpus: no-op ingest CPU / agentsview's": _START,
    "common-word search CPU / agentsview's, no daemon running before": _START,
    "common-word search CPU / agentsview's, daemon running": _START,
    "hook at 2 MB / bare interpreter (-I -S)": (
        "moving 2 MB from a pipe to a file takes most of the difference, as the program that only "
        "copies shows; "
        "the rest is the search for private tags. Payloads of this size are rare."
    ),
    "first look after the start, slowest page at the largest size": (
        "in its first second the server also looks through all the agents' folders and compiles "
        "its templates, on the "
        "same core; the second look is the one in the table."
    ),
    "append to browser, p95, Now, by hook, 10 streaming beside": (
        "the start of the hook's own interpreter is in the time, and single runs on a shared "
        "machine vary: another run "
        "of the same evening had 163 ms."
    ),
    "search as you type, p95 at the largest size": (
        "the slowest are the first letters of common words, which stand in nearly every turn of "
        "16,000 sessions."
    ),
    "git commit with hooks / plain": _SHELL,
    "git commit with hooks in an agent / plain": _SHELL,
    "common-word search CPU / agentsview's --fts (messages only), daemon running": (
        "a daemon with the database open answers from an index of messages alone, so nearly all of "
        "that time is "
        "its client starting; a tenth of it is about what a bare Python interpreter needs to start."
    ),
    "notes and cards / the rest of a first ingest, CPU": (
        "half of it is reading the events back from the database and writing what is found, cards "
        "for the search among it."
    ),
    "files named at session start": (
        "at the limit: of these files no more than the ceiling in the table were touched by any "
        "earlier session, and a block of 1,250 tokens names nine in ten of them."
    ),
}
