"""Why something failed: a small taxonomy, told from the words of results and errors.

Order matters: the first cause whose words are found holds. What says nothing of its cause is
`other`, never guessed.
"""

from __future__ import annotations

import re

from whyfor.story.failures import kind_of

FAILURE_CAUSES = {
    "sign-in": "Sign-in or rights",
    "limit": "Rate or usage limit",
    "context": "Context ran out",
    "provider": "Model API failed",
    "conflict": "Merge conflict",
    "network": "Network",
    "timeout": "Took too long",
    "dependency": "Missing dependency",
    "type": "Type error",
    "test": "Test failed",
    "syntax": "Syntax error",
    "lint": "Lint or format",
    "build": "Build failed",
    "edit": "Edit did not match",
    "file": "File not there",
    "usage": "Wrong use of a command or tool",
    "git": "git refused",
    "crash": "Program crashed",
    "nothing": "Found nothing",
    "blocked": "Not permitted",
    "other": "Other",
}

_FLAGS = re.I | re.M
# Of errors of the model's API.
_OF_API = {
    "sign-in": r"\b401\b|\b403\b|api key|/login\b|oauth|unauthorized|not (?:signed|logged) in"
    r"|authentication",
    "limit": r"\b429\b|rate[ _-]?limit|usage limit|hit your .{0,20}limit|out of .{0,20}usage"
    r"|quota|overloaded|\b529\b|credit balance",
    "context": r"too long|context (?:window|length|limit)|input length",
    "network": r"ECONN|ENOTFOUND|EAI_AGAIN|fetch failed|connection (?:refused|error|reset)"
    r"|FailedToOpenSocket|ConnectionRefused",
}
# Of results of calls.
_OF_RESULTS = {
    "conflict": r"^CONFLICT \(|could not apply |needs merge$|unmerged (?:paths|files)"
    r"|fix conflicts and",
    "sign-in": r"permission denied \(publickey|authentication failed|could not read username"
    r"|invalid credentials|\b401 unauthorized|\b403 forbidden|not logged in|bad credentials"
    r"|access denied|permission denied|a password is required",
    "limit": r"\b429\b.{0,40}too many requests|rate limit exceeded",
    "network": r"\bECONN(?:REFUSED|RESET|ABORTED)\b|\bENOTFOUND\b|\bEAI_AGAIN\b|\bETIMEDOUT\b"
    r"|could not resolve host|name resolution|network is unreachable|no route to host"
    r"|connection ?(?:timed out|refused|reset)|FailedToOpenSocket|\b100% (?:packet )?loss",
    "timeout": r"timed out after|command timed out|timeout (?:of )?\d+ ?ms exceeded"
    r"|\btimeouterror\b|request timed out|deadline exceeded",
    "dependency": r"modulenotfounderror|no module named|cannot find (?:module|package)"
    r"|command not found|: not found$|could not find a version|unable to resolve dependency"
    r"|no matching (?:distribution|package)|is not recognized as an internal"
    r"|unresolved import|cannot find -l|package .{1,80} is not in",
    "type": r"\berror TS\d{3,5}\b|: error: .{0,200}\[[a-z][a-z-]+\]$|error\[E0\d{3}\]"
    r"|incompatible types|is not assignable to|found \d+ errors? in \d+ files?"
    r"|cannot use .{1,80} \(.{0,80}type|error\[(?:invalid|unresolved|unsupported|possibly|missing)-"
    r"[a-z-]+\]:",
    "test": r"\b[1-9]\d* (?:tests? )?fail(?:ed|ing|ures?)\b|^FAILED |--- FAIL|test result: FAILED"
    r"|assertionerror|^FAIL\b|\bfailures?: [1-9]|tests?:\s+\d+ failed|^✗ |^\(fail\)"
    r"|^ *[1-9]\d* fail$",
    "syntax": r"syntaxerror|syntax error|parse error|unexpected token|unterminated string"
    r"|indentationerror",
    "lint": r"\b(?:eslint|ruff|flake8|prettier|biome|clippy|golangci-lint|stylelint)\b"
    r"|would reformat|\d+ problems? \(",
    "build": r"make(?:\[\d+\])?: \*\*\*|could not compile|build failed|compilation failed"
    r"|code ELIFECYCLE|undefined reference",
    "file": r"no such file or directory|does not exist|cannot find the (?:file|path)|\bENOENT\b",
    "usage": r"(?:unknown|illegal|invalid|unrecognized|unexpected) (?:option|argument|subcommand"
    r"|command|flag|skill|switch)|^usage: |no such tool|doesn't accept argument"
    r"|unrecognized arguments|exceeds maximum allowed|InputValidationError|' not found\. Available",
    "git": r"^ ! \[rejected\]|^fatal: |nothing to commit|failed to push some refs",
    "crash": r"^Traceback \(most recent|^panic: |segmentation fault"
    r"|unhandled (?:exception|rejection)|^Exception in thread"
    r"|uncaught (?:exception|error)|fatal error:",
    "nothing": r"no matches found|no (?:files|results|pull requests) found",
}
_API_RULES = {name: re.compile(rule, _FLAGS) for name, rule in _OF_API.items()}
_RESULT_RULES = {name: re.compile(rule, _FLAGS) for name, rule in _OF_RESULTS.items()}
_EMPTY = re.compile(r"(?:exit code 1|[\d\s])*", re.I)  # a search without a find, a count of none
_OWN = ("edit", "blocked", "context")


def cause_of_failure(event: str, head: str, tail: str, *, ran: bool) -> str | None:
    """Return the cause of a failed call or an error, by its kind, how its text begins and ends;
    None for what is no failure: a person's no, an interruption, an echo."""
    kind = kind_of(event, head[:120], ran)
    if kind is None or kind in ("denied", "interrupted"):
        return None
    text = f"{head}\n{tail}"
    if event == "error":
        return _first(_API_RULES, text) or "provider"
    if kind in _OWN:
        return kind
    if _EMPTY.fullmatch(head.strip()):
        return "nothing"
    return _first(_RESULT_RULES, text) or "other"


def _first(rules: dict[str, re.Pattern[str]], text: str) -> str | None:
    return next((name for name, rule in rules.items() if rule.search(text)), None)
