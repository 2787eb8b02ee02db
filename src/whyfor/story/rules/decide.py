"""Decides what a person's rules say of a command: allow it, deny it, or nothing.

Pure, and imports nothing but its neighbours: hooks run it. A rule allows one program with some of
its options; a line is allowed if each of its commands is. Whatever is not certain is left to the
person.
"""

from whyfor.story.rules.never import INTERPRETERS, SHELLS, is_protected, never_reason
from whyfor.story.rules.programs import (
    ANY,
    FORMAT,
    JQ,
    NAMED_PARTS,
    NONE,
    ONE,
    PATTERN,
    RUNNERS,
    SED,
    TABLES,
    TEXT,
    WORDS,
    ProgramTable,
    find_table,
)
from whyfor.story.rules.shell_commands import GlobWord, Unjudged, beginnings, read_commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Parser

ALLOW, DENY, ASK, NEVER, ABSTAIN = "allow", "deny", "ask", "never", "abstain"
EVERYWHERE = "*"
SHELL = "shell"  # the only kind of tool that rules are about
_NO_TABLE = ProgramTable(reads=False)
_MAKE = TABLES[("make",)]
# Characters that a program which hands its words to a shell would not pass on as they are.
_SHELL_MARKS = frozenset(";|&$`<>(){}!\\\"'*?")
# Folders whose code is others': a rule for a command of the project does not mean theirs.
_OTHERS_CODE = frozenset(
    "node_modules vendor third_party site-packages bower_components .venv venv".split()
)
_MOST_NAMES = 2000  # files among which those that a pattern may mean are looked for


class DecisionRule:
    """A rule as the decider reads it; see model/rules.py for what each field means."""

    __slots__ = ("agents", "decision", "id", "may", "project", "run", "until")

    def __init__(  # noqa: PLR0913 - the fields of a rule; no struct, which a hook cannot import
        self,
        id: str,
        project: str,
        agents: list[str],
        run: list[str],
        may: list[str],
        decision: str,
        until: str,
    ) -> None:
        self.id = id
        self.project = project
        self.agents = agents
        self.run = run
        self.may = may
        self.decision = decision
        self.until = until  # the last day it counts, as 2027-02-01; empty: it does not end


class CommandRequest:
    """What is asked, where, by whom. `real_path` follows links, `exists` tells whether there is
    such a file, and `names` lists a folder; without them the files are not looked at."""

    __slots__ = (
        "agent",
        "command",
        "cwd",
        "exists",
        "folders",
        "names",
        "project",
        "real_path",
        "today",
        "top",
    )

    def __init__(
        self,
        command: str,
        agent: str,
        project: str,
        top: str,
        cwd: str,
        today: str,
    ) -> None:
        self.command = command
        self.agent = agent
        self.project = project  # its identity; empty: not known, so that no project's rule counts
        self.top = top  # the folder that paths must be below; empty: no path may be absolute
        self.cwd = cwd
        self.today = today
        self.folders = [cwd]  # where its commands may run: `cd` adds to them
        self.real_path: Callable[[str], str] | None = None
        self.exists: Callable[[str], bool] | None = None
        self.names: Callable[[str], list[str]] | None = None


class CommandPart:
    """What is said of one command of a line."""

    __slots__ = ("answer", "argv", "reason", "rule")

    def __init__(self, argv: list[str], answer: str, rule: str, reason: str) -> None:
        self.argv = argv
        self.answer = answer
        self.rule = rule
        self.reason = reason


class RuleVerdict:
    """What the rules say of a line. Only allow and deny are an answer."""

    __slots__ = ("answer", "parts", "reason", "rule")

    def __init__(self, answer: str, reason: str, parts: list[CommandPart], rule: str = "") -> None:
        self.answer = answer
        self.reason = reason
        self.parts = parts
        self.rule = rule


def judge_command(
    request: CommandRequest, rules: list[DecisionRule], parser: "Parser"
) -> RuleVerdict:
    """Return what the rules say of a command. Never raises for what the command is."""
    try:
        commands = read_commands(request.command, parser)
    except Unjudged as refusal:
        denying = denying_rule(beginnings(request.command, parser), rules, request)
        if denying is not None:
            return RuleVerdict(DENY, "a rule says so", [], denying.id)
        return RuleVerdict(ABSTAIN, str(refusal), [])
    if request.top and not _is_below(request.cwd, request.top):
        return RuleVerdict(ABSTAIN, "it runs outside the project", [])
    counting = [rule for rule in rules if _counts(rule, request)]
    parts = [_judge(command, counting, request) for command in commands]
    for answer in (DENY, NEVER, ASK, ABSTAIN):
        for part in parts:
            if part.answer == answer:
                return RuleVerdict(answer, part.reason, parts, part.rule)
    return RuleVerdict(ALLOW, "every program of it is allowed", parts, parts[0].rule)


def denying_rule(
    commands: list[list[str]], rules: list[DecisionRule], request: CommandRequest
) -> "DecisionRule | None":
    """Return the rule that denies one of the commands; None if none does."""
    for command in commands:
        argv = _without_pager(command)
        for rule in rules:
            if rule.decision == DENY and _counts(rule, request) and _fits(rule.run, argv):
                return rule
    return None


def _counts(rule: DecisionRule, request: CommandRequest) -> bool:
    here = rule.project == EVERYWHERE or (rule.project == request.project != "")
    agent = not rule.agents or request.agent in rule.agents
    return here and agent and (not rule.until or request.today <= rule.until)


def _judge(command: list[str], rules: list[DecisionRule], request: CommandRequest) -> CommandPart:
    argv = _target_first(_without_folder(_without_pager(command), request))
    for decision in (DENY, ASK):
        for rule in rules:
            if rule.decision == decision and _fits(rule.run, argv):
                return CommandPart(argv, decision, rule.id, "a rule says so")
    never = never_reason(argv)
    if never is not None:
        return CommandPart(argv, NEVER, "", f"{never}: no rule can allow it")
    reason = "no rule names it"
    for rule in rules:
        if rule.decision != ALLOW or argv[: len(rule.run)] != rule.run:
            continue
        reason = _objection(rule, argv, request)
        if not reason:
            if argv[0] == "cd":
                request.folders += [_joined(folder, argv[1]) for folder in request.folders]
            return CommandPart(argv, ALLOW, rule.id, "")
    return CommandPart(argv, ABSTAIN, "", reason)


def _without_pager(argv: list[str]) -> list[str]:
    return [argv[0], *argv[2:]] if argv[:2] == ["git", "--no-pager"] and argv[2:] else argv


def _target_first(argv: list[str]) -> list[str]:
    """Return a command of make with its flags behind the target, where they mean the same."""
    if argv[0] != "make":
        return argv
    flags = []
    for word in argv[1:]:
        if word not in _MAKE.flags and not (word[:2] == "-j" and word[2:].isdigit()):
            break
        flags.append(word)
    return ["make", *argv[len(flags) + 1 :], *flags]


def _without_folder(argv: list[str], request: CommandRequest) -> list[str]:
    """Return a command of git without `-C FOLDER`, if that is a folder of the project; it counts as
    one of those where commands may run."""
    if argv[:2] != ["git", "-C"] or len(argv) < 4 or not argv[2] or argv[2].startswith("-"):
        return argv
    if _path_objection(argv[2], request) or isinstance(argv[2], GlobWord):
        return argv
    request.folders += [_joined(folder, argv[2]) for folder in request.folders]
    return ["git", *argv[3:]]


def _fits(pattern: list[str], argv: list[str]) -> bool:
    """Return whether a command begins as a pattern does; a word may end in a star, and a star
    alone is any number of words."""
    if not pattern:
        return True
    if pattern[0] == "*" and len(pattern) > 1:
        return any(_fits(pattern[1:], argv[skipped:]) for skipped in range(len(argv) + 1))
    if not argv:
        return pattern == ["*"]
    word = pattern[0]
    same = argv[0].startswith(word[:-1]) if word.endswith("*") else argv[0] == word
    return same and _fits(pattern[1:], argv[1:])


def rule_fault(run: list[str], decision: str) -> str:
    """Return what is wrong with the words of a rule; empty if nothing is."""
    if not run or not all(run):
        return "it names no program"
    if decision != ALLOW:
        return ""
    if any("*" in word for word in run):
        return "an allowed command is named word by word, without a star"
    name = run[0].rpartition("/")[2]
    least = NAMED_PARTS.get(name, 1)
    if name in SHELLS or name in INTERPRETERS:
        least = 3 if run[1:2] == ["-m"] else 2
    least = least + 1 if tuple(run[:2]) in RUNNERS else least
    if len(run) < least:
        return f"a rule for {name} needs at least {least} words"
    reason = never_reason(run)
    return f"{reason}: no rule can allow it" if reason else ""


def _objection(rule: DecisionRule, argv: list[str], request: CommandRequest) -> str:
    """Return why a rule that names a command does not allow all of it; empty if it does."""
    fault = rule_fault(rule.run, ALLOW)
    if fault:
        return fault
    length, table = find_table(argv) or (0, _NO_TABLE)
    if length > len(rule.run):
        return "the rule names too little of it"
    if argv[0] == "git" and _finds_another_repository(request):
        return "there is another repository in this one, whose settings may run something"
    if not table.reads and any(map(_is_others_code, request.folders)):
        return "it would run code of others"
    words = ArgumentCheck(table, rule.may)
    objection = words.check(argv[len(rule.run) :])
    if objection:
        return objection
    for word in words.paths():
        objection = _path_objection(word, request)
        if not objection and not table.reads:
            objection = _running_objection(word)
        if objection:
            return objection
    if table is _NO_TABLE:
        for word in words.arguments:
            if not _SHELL_MARKS.isdisjoint(word):
                return f"{word} may be read by a shell"
    return ""


def _path_objection(word: str, request: CommandRequest) -> str:
    """Return why a word of a command is not one of the project's paths; empty if it may be."""
    if _leads_outside(word, request):
        return f"{word} is outside the project"
    if isinstance(word, GlobWord) and _matches_outside(word, request):
        return f"{word} may lead outside the project"
    return ""


def _running_objection(word: str) -> str:
    """Return why a command that runs or changes something must not get a word; empty if it may."""
    if is_protected(word):
        return f"{word} decides what runs later"
    if word[:1] in ("@", "+"):
        return f"{word} may be an option or a file of options"
    return "it would run code of others" if _is_others_code(word) else ""


def _is_others_code(path: str) -> bool:
    return not _OTHERS_CODE.isdisjoint(path.split("/"))


class ArgumentCheck:
    """Checks the words behind a rule's own against its program's table."""

    def __init__(self, table: ProgramTable, may: list[str]) -> None:
        self.table = table
        self.flags = set(table.flags)
        self.values = set(table.values)
        for option in may:
            name, _, value = option.partition(" ")
            if name not in table.acts:
                (self.values if value else self.flags).add(name)
        self.arguments: list[str] = []
        self.given: list[str] = []  # values of options, but for those that are no paths
        self.options: set[str] = set()  # those that were given a value, and --files

    def check(self, words: list[str]) -> str:
        """Return what is wrong with the words; empty if nothing is."""
        place = 0
        while place < len(words):
            word = words[place]
            place += 1
            if word == "--":
                if any(later.startswith("-") for later in words[place:]):
                    return "what stands behind -- may be taken for options"
                if self.table.arguments not in (ANY, PATTERN, WORDS, TEXT) or not self.table.reads:
                    return "what stands behind -- is passed on"
            elif word.startswith("-") and word != "-" and not self._is_text(word):
                taken = self._option(word, words[place : place + 1])
                if taken < 0:
                    return f"{word.partition('=')[0]} is not in the list of its harmless options"
                place += taken
            else:
                self.arguments.append(word)
        return self._arguments()

    def _option(self, word: str, following: list[str]) -> int:
        """Return how many of the following words an option takes; -1 if it is not listed."""
        name, equals, value = word.partition("=")
        if equals and len(name) > 2:
            if name in self.values or name in self.table.inline:
                self._give(name, value)
                return 0
            if name in self.table.counts and value.isdigit():
                return 0
        if word in self.values:
            if not following or not _is_value(following[0]):
                return -1
            self._give(word, following[0])
            return 1
        if word in self.table.counts:
            return 1 if following and following[0].isdigit() else 0
        if word in self.flags:
            self.options.add(word)
            return 0
        return -1 if word.startswith("--") else self._short(word)

    def _short(self, word: str) -> int:
        """Return 0 for short options in one word, or one with its value behind it; else -1."""
        if self.table.numbers and word[1:].isdigit():
            return 0
        if word[:2] in self.values and len(word) > 2:
            self._give(word[:2], word[2:].lstrip("="))
            return 0
        if word[:2] in self.table.counts and word[2:].isdigit():
            return 0
        if all(f"-{letter}" in self.flags for letter in word[1:]):
            return 0
        return -1

    def _is_text(self, word: str) -> bool:
        """Return whether a word with a dash is only printed: no options are letters."""
        return self.table.arguments == TEXT and not word[1:].isalnum()

    def _give(self, option: str, value: str) -> None:
        self.options.add(option)
        if option not in self.table.texts:
            self.given.append(value)

    def paths(self) -> list[str]:
        """Return the words that may be paths."""
        found = self.arguments
        if self.table.arguments in (WORDS, TEXT):
            found = [word for word in found if isinstance(word, GlobWord)]
        elif self.table.arguments == PATTERN and _PATTERN_OPTIONS.isdisjoint(self.options):
            is_text = bool(found) and not isinstance(found[0], GlobWord)
            found = found[1:] if is_text else found
        return [*found, *self.given]

    def _arguments(self) -> str:
        """Return what is wrong with what stands behind the options; empty if nothing is."""
        found = self.arguments
        kind = self.table.arguments
        if kind == NONE and found:
            return f"{found[0]} is more than the rule names"
        if kind == ONE and (len(found) != 1 or found[0] in ("", "-") or found[0][0] == "+"):
            return "it names no folder of the project"
        if found and kind in _ONE_WORD_FIRST and isinstance(found[0], GlobWord):
            return "a shell may put other words there"
        if kind == FORMAT and not all(word.startswith("+") for word in found):
            return "it may set the clock"
        if kind == SED and not (found and _only_prints(found[0])):
            return "its script does more than print lines"
        if kind == JQ and found and _reads_environment(found[0]):
            return "its filter reads variables or other files"
        if not self.table.reads and any(_sets_variable(word) for word in found):
            return "it sets a variable"
        return ""


_PATTERN_OPTIONS = frozenset(("-e", "--regexp", "--files"))  # with them, all words are paths
_ONE_WORD_FIRST = (ONE, FORMAT, SED, JQ)


def _sets_variable(word: str) -> bool:
    return "=" in word and word[0] not in "./"


def _is_value(word: str) -> bool:
    """Return whether a word can only be a value: no option, but for a negative number, and one word
    in every shell."""
    if isinstance(word, GlobWord):
        return False
    return not word.startswith("-") or word[1:].isdigit()


def _only_prints(script: str) -> bool:
    """Return whether a script of sed prints lines by their numbers: `1,20p`."""
    return script.endswith("p") and not script[:-1].strip("0123456789,$") and len(script) > 1


def _reads_environment(script: str) -> bool:
    """Return whether a filter of jq reads the environment or a module; `.env` is only a field."""
    words = "".join(char if char.isalnum() or char in "_.$" else " " for char in script).split()
    return any(word.partition(".")[0] in ("env", "$ENV", "import", "include") for word in words)


def _leads_outside(word: str, request: CommandRequest) -> bool:
    """Return whether a word may be a path outside the project. What looks like one, is one."""
    if word.startswith("~"):
        return True
    for piece in word.replace("=", ":").replace(",", ":").split(":"):
        if piece.startswith("/") and not _is_below(piece, request.top):
            return True
        if ".." in piece.split("/"):
            return True
    return _links_outside(word, request)


def _links_outside(word: str, request: CommandRequest) -> bool:
    follow = request.real_path
    if follow is None or not word or not request.top:
        return False
    top = follow(request.top)
    return not all(_is_below(follow(_joined(each, word)), top) for each in request.folders)


def _matches_outside(word: str, request: CommandRequest) -> bool:
    """Return whether a word in whose place a shell puts names of files may be one of a link that
    leads outside. All names that begin as the word does count."""
    follow, names = request.real_path, request.names
    if follow is None or names is None or not request.top:
        return False
    top = follow(request.top)
    places = list(request.folders) if word[0] != "/" else [""]
    for piece in word.strip("/").split("/"):
        fixed = piece.replace("?", "*").replace("[", "*").partition("*")[0]
        if fixed == piece:
            places = [f"{place}/{piece}" for place in places]
        else:
            places = [
                f"{place}/{name}"
                for place in places
                for name in names(place)
                if _may_mean(fixed, name)
            ]
        if len(places) > _MOST_NAMES:
            return True
    return not all(_is_below(follow(place), top) for place in places)


def _may_mean(beginning: str, name: str) -> bool:
    """Return whether a pattern that begins so may mean a name."""
    hidden = name.startswith(".") and not beginning.startswith(".")
    return name.startswith(beginning) and not hidden


def _finds_another_repository(request: CommandRequest) -> bool:
    """Return whether git, started in one of the folders, would take another repository than the
    project's: one inside it, or a bare one, which may be among the files of any commit."""
    exists, follow = request.exists, request.real_path
    if exists is None or follow is None or not request.top:
        return False
    top = follow(request.top)
    for folder in map(follow, request.folders):
        while _is_below(folder, top):
            if folder != top and exists(f"{folder}/.git"):
                return True
            bare = exists(f"{folder}/HEAD") and exists(f"{folder}/objects")
            if bare and not exists(f"{folder}/.git"):
                return True
            folder = folder.rpartition("/")[0]
    return False


def _joined(folder: str, path: str) -> str:
    return path if path.startswith("/") else f"{folder}/{path}"


def _is_below(path: str, top: str) -> bool:
    top = top.rstrip("/")
    return bool(top) and (path == top or path.startswith(top + "/"))
