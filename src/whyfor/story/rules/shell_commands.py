"""The simple commands of a line for the shell, if the line is plain enough to be sure of them.

Two readings must agree: a parser's tree, of which only listed kinds of nodes are taken, and a
small strict lexer. Everything that a shell could read otherwise is refused. Imports nothing: hooks
run it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LONGEST = 8192  # characters of a line that is judged
_NODES = frozenset(
    (
        "program",
        "list",
        "pipeline",
        "command",
        "command_name",
        "word",
        "string",
        "string_content",
        "raw_string",
        "number",
        "concatenation",
        "subshell",
        "negated_command",
        "redirected_statement",
        "file_redirect",
        "file_descriptor",
    )
)
_TOKENS = frozenset(("&&", "||", "|", ";", "(", ")", "!", '"', ">", ">&"))
_WORDS = frozenset(("word", "string", "raw_string", "number", "concatenation"))
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-+/")
# What no shell reads as anything but itself, in a word without quotes. `_bare` looks at a tilde, an
# equals sign or a caret at the beginning of a word, and at a glob that might become an option.
_BARE = _NAME | frozenset(",:=@%~^*?[]")
_GLOBS = frozenset("*?[")
_QUOTED = frozenset(map(chr, range(0x20, 0x7F))) - frozenset('"$`!')
_ESCAPED = _QUOTED - frozenset("\\")  # in quotes, a backslash before these is only itself
_ALONE = {"\\(": "(", "\\)": ")"}  # words that all shells read alike: how `find` groups
_RAW = frozenset(map(chr, range(0x20, 0x7F))) - frozenset("'")
# Words that begin something else than a command in one of the shells.
_RESERVED = frozenset(
    "if then else elif fi for while until do done case esac select function time coproc in "
    "foreach end repeat nocorrect noglob [[ ]] - .".split()
)


class Unjudged(Exception):
    """Why nobody but a person can say what a line does."""


class GlobWord(str):
    """A word in the place of which a shell may put names of files, any number of them."""

    __slots__ = ()


def read_commands(line: str, parser: "Parser") -> list[list[str]]:
    """Return the words of each command of a line, as the shell will pass them, in their order.
    Raises Unjudged."""
    line = line.strip(" ")
    if not line:
        raise Unjudged("there is nothing to run")
    if len(line) > LONGEST:
        raise Unjudged("it is too long to judge")
    if not line.isascii() or not line.isprintable():
        raise Unjudged("it has characters that are not printable ASCII, or several lines")
    root = parser.parse(line.encode()).root_node
    if root.has_error:
        raise Unjudged("it cannot be parsed")
    found: list[list[str]] = []
    _walk(root, found)
    if found != _lex(line):
        raise Unjudged("shells may read it in more than one way")
    if not found:
        raise Unjudged("it names no program")
    return found


def beginnings(line: str, parser: "Parser") -> list[list[str]]:
    """Return how the commands of a line begin, wherever they stand in it: their words up to the
    first that is made when it runs. Only to refuse by: what a line does cannot be told by it."""
    if len(line) > LONGEST or not line.isascii():
        return []
    found: list[list[str]] = []
    pending = [parser.parse(line.encode()).root_node]
    while pending:
        node = pending.pop()
        pending.extend(reversed(node.children))
        if node.type == "command":
            argv = _beginning(node)
            if argv:
                found.append(argv)
    return found


def _beginning(node: "Node") -> list[str]:
    argv: list[str] = []
    for child in node.children:
        try:
            if child.type == "command_name":
                argv.append(_program(child))
            elif child.type in _WORDS and argv:
                argv.append(_word(child))
            elif child.type != "variable_assignment":
                return argv
        except Unjudged:
            return argv
    return argv


# -- the parser's reading ------------------------------------------------------------------------


def _walk(node: "Node", found: list[list[str]]) -> None:
    """Collect the commands below a node; raise Unjudged for a node that is not listed."""
    _check_node(node)
    if node.type == "command":
        found.append(_command(node))
    elif node.type == "file_redirect":
        _check_redirection(node)
    else:
        for child in node.children:
            _walk(child, found)


def _check_node(node: "Node") -> None:
    if node.is_missing or node.is_error:
        raise Unjudged("it cannot be parsed")
    if node.is_named and node.type not in _NODES:
        raise Unjudged(_KINDS.get(node.type, "it uses more of the shell than can be judged"))
    if not node.is_named and node.type not in _TOKENS:
        raise Unjudged(_KINDS.get(node.type, "it uses more of the shell than can be judged"))


_KINDS = {
    "command_substitution": "it runs text that is made when it runs",
    "process_substitution": "it runs text that is made when it runs",
    "simple_expansion": "a variable decides what it does",
    "expansion": "a variable decides what it does",
    "arithmetic_expansion": "a variable decides what it does",
    "variable_assignment": "it sets a variable",
    "heredoc_redirect": "it has text of its own behind <<",
    "herestring_redirect": "it has text of its own behind <<<",
    "ansi_c_string": "it has escapes in a word",
    "brace_expression": "braces make several words of one",
    "&": "it goes on in the background",
    "comment": "it has a comment",
}


def _command(node: "Node") -> list[str]:
    argv: list[str] = []
    for child in node.children:
        _check_node(child)
        if child.type == "command_name":
            argv.append(_program(child))
        elif child.type in _WORDS and argv:
            argv.append(_word(child))
        else:
            raise Unjudged("it uses more of the shell than can be judged")
    if not argv:
        raise Unjudged("it names no program")
    return argv


def _program(node: "Node") -> str:
    kinds = [child.type for child in node.children]
    if kinds != ["word"] or node.children[0].children:
        raise Unjudged("its program is quoted or put together")
    name = _text(node)
    if not name or not _NAME.issuperset(name) or name in _RESERVED or name[0] in "-+":
        raise Unjudged("its program is quoted or put together")
    return name


def _word(node: "Node") -> str:
    kind = node.type
    if kind == "concatenation":
        parts = node.children
        if not parts or any(part.type not in ("word", "number", *_QUOTES) for part in parts):
            raise Unjudged("a word is put together when it runs")
        words = [_word(part) for part in parts]
        if any(isinstance(word, GlobWord) for word in words):
            raise Unjudged("a word is put together when it runs")
        whole = "".join(words)
        if _text(node)[:1] in "~=^" or not whole:
            raise Unjudged("a word is put together when it runs")
        return whole
    if kind in ("word", "number"):
        return _plain(_text(node), node)
    if kind == "string":
        inner = [child for child in node.children if child.is_named]
        if any(child.type != "string_content" or child.children for child in inner):
            raise Unjudged("a word is put together when it runs")
        return _between(_text(node), '"', _QUOTED)
    if kind == "raw_string" and not node.children:
        return _between(_text(node), "'", _RAW)
    raise Unjudged("it uses more of the shell than can be judged")


_QUOTES = ("string", "raw_string")


def _plain(text: str, node: "Node") -> str:
    if node.children:
        raise Unjudged("a word is put together when it runs")
    return _bare(text)


def _bare(text: str) -> str:
    """Return a word without quotes if it is read in one way only. Raises Unjudged."""
    if text in _ALONE:
        return _ALONE[text]
    if not text or not _BARE.issuperset(text):
        raise Unjudged("a word has characters that shells read in their own way")
    if text[0] in "~=^" or "=~" in text or ":~" in text:
        raise Unjudged("a word begins with what a shell replaces")
    if _GLOBS.isdisjoint(text):
        return text
    if not _has_fixed_beginning(text):
        raise Unjudged("names of files may be taken for options")
    if "**" in text:
        raise Unjudged("a word may be names of files at any depth")
    return GlobWord(text)


def _has_fixed_beginning(text: str) -> bool:
    """Return whether all names of files that a shell puts in the place of a word begin so that they
    are no other option than the word itself."""
    fixed = text.replace("?", "*").replace("[", "*").partition("*")[0]
    if fixed.startswith("--"):
        return "=" in fixed
    return bool(fixed) and fixed[0] not in "-+"


def _between(text: str, quote: str, allowed: "frozenset[str]") -> str:
    inner = text[1:-1]
    if len(text) < 2 or text[0] != quote or text[-1] != quote or not allowed.issuperset(inner):
        raise Unjudged("a quoted word has characters that shells read in their own way")
    if quote == '"' and any(part[:1] not in _ESCAPED for part in inner.split("\\")[1:]):
        raise Unjudged("a quoted word has characters that shells read in their own way")
    return inner


def _check_redirection(node: "Node") -> None:
    """Refuse a redirection unless it has one plain target that is no file. The parser hangs words
    that follow a redirection below it."""
    parts = []
    for child in node.children:
        _check_node(child)
        if child.children:
            raise Unjudged("it writes to a file")
        parts.append(_text(child))
    if parts not in _REDIRECTIONS:
        raise Unjudged("it reads from or writes to a file")


_REDIRECTIONS = (
    [">", "/dev/null"],
    ["1", ">", "/dev/null"],
    ["2", ">", "/dev/null"],
    ["2", ">&", "1"],
    ["1", ">&", "2"],
    [">&", "2"],
)


def _text(node: "Node") -> str:
    raw = node.text
    return raw.decode("ascii") if raw is not None else ""


# -- the second reading --------------------------------------------------------------------------


def _lex(line: str) -> list[list[str]]:
    """Return the words of each command, as a strict lexer reads them. Raises Unjudged."""
    found: list[list[str]] = [[]]
    at = 0
    while at < len(line):
        char = line[at]
        if char == " ":
            at += 1
        elif char in ";&|()!":
            at = _operator(line, at, found)
        else:
            at = _argument(line, at, found)
    return [argv for argv in found if argv]


def _operator(line: str, at: int, found: list[list[str]]) -> int:
    width = 2 if line[at : at + 2] in ("&&", "||") else 1
    if width == 1 and line[at] == "&":
        raise Unjudged("it goes on in the background")
    if line[at] == "!" and (found[-1] or line[at + 1 : at + 2] != " "):
        raise Unjudged("a word begins with what a shell replaces")
    if found[-1]:
        found.append([])
    return at + width


def _argument(line: str, at: int, found: list[list[str]]) -> int:
    for form in ("2>&1", "1>&2", ">&2", "1>/dev/null", "2>/dev/null", ">/dev/null"):
        spaced = form.replace(">/", "> /")
        for shape in (form, spaced):
            end = at + len(shape)
            if line.startswith(shape, at) and line[end : end + 1] in ("", " ", ";", "|", ")", "&"):
                return end
    if line[at : at + 2] in _ALONE and line[at + 2 : at + 3] in ("", " "):
        found[-1].append(_ALONE[line[at : at + 2]])
        return at + 2
    word = ""
    while at < len(line) and line[at] not in " ;&|()":
        quote = line[at]
        if quote in "\"'":
            end = line.find(quote, at + 1)
            if end < 0:
                raise Unjudged("a quote is not closed")
            allowed = _QUOTED if quote == '"' else _RAW
            word += _between(line[at : end + 1], quote, allowed)
            at = end + 1
        elif quote in _BARE:
            word += quote
            at += 1
        else:
            raise Unjudged("a word has characters that shells read in their own way")
    found[-1].append(word)
    return at
