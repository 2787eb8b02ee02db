"""Which shell commands may change files of a work tree, by their text as it stands in JSON."""

# programs that write nothing into a work tree
HARMLESS = frozenset(
    b"git ls cat head tail grep rg egrep fgrep wc pwd cd true false test [ stat file tree diff "
    b"which env date sleep gh jq echo printf ps du df id whoami uname sort uniq cut nl less "
    b"more".split()
)
# of git, those that change files
WRITING = frozenset(
    b"checkout restore apply stash merge pull rebase revert am mv rm reset switch cherry-pick "
    b"clean submodule worktree".split()
)
SILENT = (b"2>&1", b"2>/dev/null", b">/dev/null", b"> /dev/null", b"1>&2", b">&2", b"&>/dev/null")


def may_write(command: bytes) -> bool:
    """Return whether a command, as it stands in JSON, may change files of the work tree."""
    plain = command.replace(b"\\n", b"\n").replace(b"\\t", b" ")
    for part in SILENT:
        plain = plain.replace(part, b"")
    if not plain.strip():
        return False
    if b">" in plain or b"$(" in plain or b"`" in plain:
        return True
    for sign in (b"&&", b"||", b"|", b";", b"&"):
        plain = plain.replace(sign, b"\n")
    return any(writes(part.split()) for part in plain.split(b"\n"))


def writes(words: list[bytes]) -> bool:
    """Return whether a simple command may change files."""
    while words and b"=" in words[0] and words[0][:1] != b"-":
        words = words[1:]
    if not words:
        return False
    program = words[0].rpartition(b"/")[2]
    if program not in HARMLESS:
        return True
    return program == b"git" and any(word in WRITING for word in words[1:])
