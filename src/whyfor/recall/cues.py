"""The words that tell what a sentence is: a finding, a decision, a guess, a correction, a rule.

English only, and only words of the language itself, none of any one project. A sentence without
such a word is no note: silence is better than noise.
"""

from __future__ import annotations

import re

from whyfor.model.memory import ObservationType
from whyfor.model.titles import CONTROL as CONTROL
from whyfor.model.titles import PLAN as PLAN


def _inside(*phrases: str) -> re.Pattern[str]:
    """A pattern for sentences that have one of these phrases in them."""
    return re.compile(rf"\b(?:{'|'.join(phrases)})\b", re.I)


def _first(*phrases: str) -> re.Pattern[str]:
    """A pattern for sentences that begin with one of these phrases."""
    return re.compile(rf"(?:{'|'.join(phrases)})", re.I)


LEARNED = _inside(
    r"because",
    r"due to",
    r"caused by",
    r"root cause",
    r"the (?:cause|culprit|reason|catch)",
    r"turns? out",
    r"turned out",
    r"the (?:actual|real|underlying) (?:issue|problem|bug)",
    r"only works? (?:if|when|with)",
    r"does(?:n't| not) (?:support|work|exist|accept|handle|allow)",
    r"never (?:called|reached|set|fires?)",
    r"(?:must|has to|needs to) be .{1,60} (?:before|because|otherwise)",
    r"which means",
    r"(?:that's|this is|explains) why",
    r"silently",
    r"unexpectedly",
    r"surprisingly",
    r"actually (?:is|was|returns|uses|means)",
    r"requires? (?:that|the|an?)",
)
GOTCHA = _inside(
    r"gotcha",
    r"beware",
    r"careful",
    r"watch out",
    r"silently",
    r"unexpectedly",
    r"surprisingly",
    r"only works? (?:if|when|with)",
    r"does(?:n't| not) (?:support|work|accept|handle|allow)",
    r"otherwise",
)
_REASON = r"(?:because|since|so that|to avoid)"
DECIDED = _inside(
    r"(?:i|we)(?:'ll| will|'ve| have)? (?:decided|chose|chosen|opted|picked|settled)",
    r"(?:i|we)(?:'ll| will|'m|'re)? (?:went|go|going) with",
    r"decision is",
    r"decided (?:to|on|against)",
    rf"instead of .{{2,80}}{_REASON}",
    rf"rather than .{{2,80}}{_REASON}",
    r"prefer(?:red)? .{2,60} over",
)
# both, for a text in small letters: three times as fast as to ignore their case
_TELLS = re.compile(f"{LEARNED.pattern}|{DECIDED.pattern}")
HEDGED = _inside(
    r"might",
    r"may be",
    r"maybe",
    r"perhaps",
    r"probably",
    r"likely",
    r"possibly",
    r"presumably",
    r"seems?",
    r"appears?",
    r"suspect",
    r"could be",
    r"I (?:think|believe)",
    r"hypothesis",
    r"not sure",
    r"unclear",
    r"should (?:now )?(?:be|work|fix)",
)
# What an agent says while it works, about itself, or to be polite.
CHATTER = _first(
    r"let(?: me|'s)\b",
    r"i(?:'ll| will| need| should| see| understand| apologi[sz]e)\b",
    r"i'm (?:going|about)\b",
    r"now(?:,| let| i)\b",
    r"next,? (?:i|let)\b",
    r"(?:great|perfect|excellent|good|sure|sorry|wait|hmm|ok(?:ay)?)\b",
    r"you're (?:right|absolutely)\b",
    r"(?:looking at|checking|first,)",
    r"here(?:'s| is| are)\b",
    r"(?:would you|do you|shall i|want me)\b",
)
# Closing words that do not say what was done.
WEAK_OUTCOME = re.compile(
    r"(?:done|all (?:done|set|good)|finished|completed?|summary|changes(?: made)?"
    r"|what (?:i|was|changed)|the (?:task|work|implementation) is (?:now )?(?:done|complete)"
    r"|everything (?:works|is))\b.{0,24}$",
    re.I,
)
CORRECTION = _first(
    r"no[,.! ]",
    r"nope\b",
    r"wrong\b",
    r"(?:that|this)(?:'s| is) (?:wrong|not|incorrect)\b",
    r"not (?:what|like|that)\b",
    r"still (?:not|no|the|get|fail|see|broken|does|is|happen)",
    r"(?:revert|undo)\b",
    r"it(?:'s| is) (?:not|still)\b",
    r"(?:it|that|this) (?:does|did|is)(?:n't| not) \w+",
    r"you (?:forgot|missed|broke|removed)\b",
    r"i (?:said|asked|told you|meant)\b",
    r"why did you\b",
    r"stop \w+ing\b",
    r".{0,60}\bis not (?:showing|working)\b",
)
ANSWER = _first(r"no\b", r"nope\b", r"not\b")  # also what a person says to a question
_NAME = r"[\w./@-]+"
RULE = _first(
    r"(?:please )?(?:always|never)\b(?!-| mind)",
    r"from now on\b",
    r"do(?:n't| not) ever\b",
    r"make sure (?:to|you) (?:always|never)\b",
    r"in (?:this|future|all) .{2,40}(?:always|never)\b",
    rf"(?:please )?use {_NAME}(?: {_NAME})?,? (?:not|instead of|rather than|never) {_NAME}",
    rf"prefer {_NAME} (?:over|to) {_NAME}",
)
_RULES = re.compile(  # in small letters, like _TELLS
    r"\b(?:always|never|from now on|ever|prefer"
    r"|use \S+(?: \S+)? (?:not|instead|rather|never))\b"
)
NEXT = _inside(
    r"next steps?",
    r"remaining",
    r"still (?:to do|need|missing|open|left)",
    r"not yet",
    r"todos? (?:left|remain|is|are)",
    r"to do",
    r"follow[- ]?ups? (?:work|task|step|issue|pr|is|are)",
    r"as a follow[- ]?up",
    r"once you",
    r"you(?:'ll| will)? (?:need|have) to",
    r"left (?:to do|open)",
    r"as a next",
    r"later we",
    r"future work",
    r"blocked (?:on|by)",
    r"waiting (?:for|on)",
)
# What is left, but not to be done: it was so before, or is nobody's task here.
_NOT_OPEN = _inside(r"unrelated", r"pre-?existing", r"already", r"not (?:related|part)")
# A question that only offers help, or asks whether the person is content.
_OFFER = _first(
    r"(?:so |now,? )?(?:what|how|which|where|is there|anything).{0,40}\b(?:you(?:'d| would)? like"
    r"|i (?:can )?(?:help|do)|else|help you)\b",
    r"(?:do|does|did|is|are) (?:that|this|it|you|everything)"
    r"(?: (?:want|need|have|like|make|clear|look|help|work|good|ok(?:ay)?))+\b",
    r"(?:any|ready|sound|make sense)\b",
)
# Prompts that carry no request of their own.
_WORD = re.compile(r"[^\W\d_]{2,}")
_CODE = re.compile(r"[{}<>;=()\[\]|\\]")


def may_tell(text: str) -> bool:
    """Whether a text may hold a finding or a decision: cheaper than to look at each sentence."""
    return _TELLS.search(text.lower()) is not None


def may_rule(text: str) -> bool:
    """Whether a prompt may hold a rule, in the same way."""
    return _RULES.search(text.lower()) is not None


def says_left(text: str) -> bool:
    """Whether a sentence says that something is left to do."""
    if NEXT.search(text) is None or _NOT_OPEN.search(text) is not None:
        return False
    return not (text.endswith("?") and is_offer(text))


def is_offer(text: str) -> bool:
    """Whether a question asks for nothing that the work depends on."""
    return CHATTER.match(text) is not None or _OFFER.match(text) is not None


def is_prose(text: str) -> bool:
    """Whether a sentence is made of words: at least four, and not mostly code."""
    if len(_WORD.findall(text)) < 4:
        return False
    return len(_CODE.findall(text)) * 12 <= len(text) + 24


def says_enough(text: str) -> bool:
    """Whether a finding says what was found, not just that something was."""
    return len(_WORD.findall(text)) >= 6


def type_of(text: str) -> ObservationType:
    """Return what kind of note a text is that somebody wrote down."""
    if RULE.match(text):
        return "rule"
    if DECIDED.search(text):
        return "decision"
    return "gotcha" if GOTCHA.search(text) else "discovery"
