"""Which bytes stand between private tags, in JSON as agents write it and in plain text.

Imports nothing, like all that a hook runs: hooks and ingest use this one file, so that they
cannot disagree. No byte is looked at more often than a fixed number of times, whatever the text.
"""

# opening tags of a message that are honoured one by one; of a message with more nothing is left
MOST = 100
ATTRIBUTES = 256  # bytes of a tag after its name
BLANKS = 16  # between `<` and the name
# What a message's structure hangs on, and stays when the rest of it goes: ids, kinds, times,
# places.
STRUCTURE = frozenset(
    b"type subtype role kind id uuid parentUuid logicalParentUuid sessionId session_id sessionID "
    b"messageID message_id "
    b"messageId parentID parentId parent_id tool_use_id toolUseId toolUseID tool_call_id "
    b"toolCallId toolName tool_name "
    b"call_id callID callId requestId request_id turn_id turnId prompt_id promptId agentId "
    b"agent_id agent_type name "
    b"timestamp startTime lastUpdated version cwd gitBranch model modelID providerID media_type "
    b"mimeType status "
    b"stop_reason hook_event_name transcript_path agent_transcript_path userType "
    b"entrypoint projectHash".split()
)
# Below these everything is what somebody said or did.
CONTENT = frozenset(
    b"input arguments args parameters toolUseResult tool_input tool_response tool_result result "
    b"results resultDisplay "
    b"output changes".split()
)


def spans(data: bytes, lists: frozenset[bytes] = frozenset()) -> list[tuple[int, int]] | None:
    """Ranges of a JSON text that are private, in order: from, to. Each lies inside one string.
    None: it is no JSON.

    `lists` names arrays whose elements are messages of their own.
    """
    return reach(data, lists, 0)[0]


def reach(
    data: bytes, lists: frozenset[bytes], depth: int
) -> tuple[list[tuple[int, int]] | None, int, bool]:
    """The same of a record before which the same message opened so many tags: how many are open
    behind it, and whether it closed one of those."""
    found = Json(data, lists)
    if not found.sound:
        return None, depth, False
    lower = data.lower()  # the same length: only ASCII changes
    messages: dict[int, list[String]] = {}
    for string in found.strings:
        messages.setdefault(string[2], []).append(string)
    private: list[tuple[int, int]] = []
    left, closed = depth, False
    for number, parts in messages.items():
        own, open_behind, joined = of_message(lower, parts, depth if number == 1 else 0)
        private += own
        if number == 1:
            left, closed = open_behind, joined
    return merged(private), left, closed


def text_spans(data: bytes) -> list[tuple[int, int]]:
    """The same of a text that is no JSON: it is one string."""
    return merged(of_message(data.lower(), [(0, len(data), 0, b"", True)], 0)[0])


def everything(data: bytes) -> list[tuple[int, int]]:
    """All that is said in a JSON text; what is left is its structure."""
    return merged(
        [(part[0], part[1]) for part in Json(data, frozenset()).strings if is_said(data, part)]
    )


def elements(data: bytes, lists: frozenset[bytes]) -> list[tuple[int, int]]:
    """Where the messages stand that a JSON text has in named lists."""
    return Json(data, lists).elements


def marked(data: bytes) -> bool:
    """Whether there is a tag at all; costs next to nothing where the word is not used."""
    lower = data.lower()
    at = 0
    while (word := lower.find(b"private", at)) >= 0:
        floor, at = at, word + 7
        if tag_start(lower, word, floor)[0] >= 0 and tag_end(lower, at, len(lower)) >= 0:
            return True
    return False


def without(data: bytes, gone: list[tuple[int, int]]) -> bytes:
    kept, at = [], 0
    for start, stop in gone:
        kept.append(data[at:start])
        at = stop
    kept.append(data[at:])
    return b"".join(kept)


def merged(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for start, stop in sorted(found):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], stop))
        elif start < stop:
            out.append((start, stop))
    return out


# -- one message ---------------------------------------------------------------------------------


def of_message(
    lower: bytes, parts: "list[String]", depth: int
) -> tuple[list[tuple[int, int]], int, bool]:
    """A tag never closed reaches to the end of its string, unless a later string of the message
    closes it.

    `depth` is how many tags earlier strings opened; told are also how many are open behind
    these, and whether one of the earlier was closed.

    Behind the last tag that is honoured nothing is read any more: all that the message says goes
    then, and with it what an earlier record of it left open.
    """
    found: list[tuple[int, int]] = []
    count = since = 0  # since: the string after the one that opened the first of these
    carried, closed = depth, False
    for index, (start, stop, *_) in enumerate(parts):
        own = opened = 0
        joined = False
        for first, last, closing in tags(lower, start, stop, MOST + 1 - count):
            if not closing:
                opened = opened if own else first
                own += 1
                count += 1
            elif own:
                own -= 1
                if not own:
                    found.append((opened, last))
            elif depth:
                depth -= 1
                joined = True
                closed = closed or depth < carried
                carried = min(carried, depth)
                found += [(part[0], part[1]) for part in parts[since:index] if is_said(lower, part)]
                found.append((start, last))
                since = index + 1
        if own:
            found.append((opened, stop))
            since = since if depth else index + 1
        if joined and depth:
            found.append((start, stop))
        depth += own
        if count > MOST:
            everything_said = [(part[0], part[1]) for part in parts if is_said(lower, part)]
            return everything_said, depth, closed or carried > 0
    return found, depth, closed


def is_said(data: bytes, part: "String") -> bool:
    """Not one of the names and ids that the structure hangs on."""
    start, stop, _, key, content = part
    if content:
        return True
    if key == b":":
        return False  # is itself a key
    return key not in STRUCTURE or stop - start > 200 or b" " in data[start:stop]


# -- tags ----------------------------------------------------------------------------------------


def tags(lower: bytes, start: int, stop: int, most: int = 0) -> list[tuple[int, int, bool]]:
    """The tags in one string: from, to, whether it closes. Their brackets may be escaped, and
    the escapes again.

    With `most`, up to that many opening ones; what stands behind the last of them is not looked
    at.
    """
    found = []
    opening = 0
    at = start
    while (word := lower.find(b"private", at, stop)) >= 0:
        floor, at = at, word + 7
        first, closing = tag_start(lower, word, floor)
        if first < 0:
            continue
        last = tag_end(lower, at, stop)
        if last >= 0:
            found.append((first, last, closing))
            at = last
            opening += not closing
            if opening == most and not closing:
                break
    return found


def tag_start(lower: bytes, word: int, floor: int) -> tuple[int, bool]:
    """Where the tag around this word begins, and whether it is a closing one; -1 if there is
    none."""
    at = before_blanks(lower, word, floor)
    closing = at > floor and lower[at - 1] == 47
    if closing:
        at = before_blanks(lower, backslashes(lower, at - 1, floor), floor)
    if at > floor and lower[at - 1] == 60:
        return at - 1, closing
    if lower[max(floor, at - 5) : at] == b"u003c":
        first = backslashes(lower, at - 5, floor)
        return (first if first < at - 5 else -1), closing
    return -1, closing


def tag_end(lower: bytes, at: int, stop: int) -> int:
    """Behind the tag whose name ends here; -1 if it is none, or one that holds nothing:
    `<private/>`."""
    limit = min(stop, at + ATTRIBUTES)
    plain, escaped = lower.find(b">", at, limit), lower.find(b"u003e", at, limit)
    while escaped > 0 and lower[escaped - 1] != 92:
        escaped = lower.find(b"u003e", escaped + 5, limit)
    if plain < 0 and escaped < 0:
        return -1
    if escaped < 0 or 0 <= plain < escaped:
        end, last = plain, plain + 1
    else:
        end, last = backslashes(lower, escaped, at), escaped + 5
    inside = lower[at:end]
    if not inside:
        return last
    blank = inside[0] in b" \t\r\n" or (
        inside[0] == 92 and inside.lstrip(b"\\")[:1] in (b"n", b"t", b"r")
    )
    if not blank or b"<" in inside or b"\\u003c" in inside or inside.rstrip().endswith(b"/"):
        return -1
    return last


def before_blanks(lower: bytes, at: int, floor: int) -> int:
    """Where the blanks before a place begin; escaped ones are blanks too."""
    for _ in range(BLANKS):
        if at > floor and lower[at - 1] in b" \t\r\n":
            at -= 1
        elif at - 1 > floor and lower[at - 1] in b"ntr" and lower[at - 2] == 92:
            at = backslashes(lower, at - 1, floor)
        else:
            break
    return at


def backslashes(data: bytes, stop: int, floor: int) -> int:
    """Where the run of backslashes that ends here begins."""
    while stop > floor and data[stop - 1] == 92:
        stop -= 1
    return stop


# -- JSON ----------------------------------------------------------------------------------------

# Where a string begins and ends, its message, the key it is the value of (`:` for a key), and
# whether it stands below a key of CONTENT.
String = tuple[int, int, int, bytes, bool]
VALUE, KEY, COLON, NEXT = range(4)  # what may follow
SCALAR = b"-+.0123456789eEtrufalsn"
BLANK = b" \t\r\n\0"


class Open:
    """An object or an array that is not closed yet."""

    __slots__ = ("array", "begun", "content", "key", "message")

    def __init__(
        self, array: bool, key: bytes, message: int, content: bool, begun: int = -1
    ) -> None:
        self.array = array
        self.key = key
        self.message = message
        self.content = content
        self.begun = begun  # where it begins, if it is an element of a named list


class Json:
    """Walks one or several JSON values in a row; a string that holds JSON again is walked too,
    one level deep."""

    def __init__(self, data: bytes, lists: frozenset[bytes]) -> None:
        self.data = data
        self.lists = lists
        self.strings: list[String] = []
        # of the named lists, in which each is a message: from, to
        self.elements: list[tuple[int, int]] = []
        self.messages = 0
        self.sound = self.walk(0, len(data), 0, Open(False, b"", 0, False))

    def walk(self, at: int, stop: int, level: int, outer: Open) -> bool:  # noqa: C901, PLR0912 - a parser's loop: each byte decides at once
        """Whether all of it is JSON; `level` is how often its quotes are escaped."""
        data, extra = self.data, (1 << level) - 1  # backslashes that belong to a quote
        stack = [outer]
        key, want = b"", VALUE
        while True:
            quote = self.quote(at, stop, level)
            between = data[at : quote - extra] if quote >= 0 else data[at:stop]
            if level:
                between = (
                    between.replace(b"\\n", b"  ").replace(b"\\t", b"  ").replace(b"\\r", b"  ")
                )
            before = 0
            for place, mark in enumerate(between, at):
                if mark in SCALAR:
                    if want != VALUE and not (want == NEXT and before and before in SCALAR):
                        return False
                    want = NEXT
                elif mark not in BLANK:
                    if mark in b"{[" and (want == VALUE or (want == NEXT and len(stack) == 1)):
                        stack.append(self.opened(stack, key, mark == 91, place))
                        key, want = b"", VALUE if mark == 91 else KEY
                    elif (
                        mark in b"}]"
                        and want != COLON
                        and len(stack) > 1
                        and stack[-1].array == (mark == 93)
                    ):
                        if (begun := stack.pop().begun) >= 0 and not level:
                            self.elements.append((begun, place + 1))
                        key, want = b"", NEXT
                    elif mark == 44 and want == NEXT and len(stack) > 1:
                        key, want = b"", VALUE if stack[-1].array else KEY
                    elif mark == 58 and want == COLON:
                        want = VALUE
                    else:
                        return False
                before = mark
            if quote < 0:
                return len(stack) == 1 and want == NEXT
            end = self.quote(quote + 1, stop, level)
            if end < 0 or want not in (VALUE, KEY):
                return False
            self.string(quote + 1, end - extra, b":" if want == KEY else key, stack[-1], level)
            key, want = (data[quote + 1 : end - extra], COLON) if want == KEY else (key, NEXT)
            at = end + 1

    def quote(self, at: int, stop: int, level: int) -> int:
        """The next quote that is one at this level; -1 if there is none."""
        while (found := self.data.find(b'"', at, stop)) >= 0:
            run = found - backslashes(self.data, found, at)
            for _ in range(level):
                if run % 2 == 0:
                    return -1
                run //= 2
            if run % 2 == 0:
                return found
            at = found + 1
        return -1

    def opened(self, stack: list[Open], key: bytes, array: bool, place: int) -> Open:
        above = stack[-1]
        element = above.array and above.key in self.lists
        message = above.message
        if element or not message:
            self.messages += 1
            message = self.messages
        nested = any(one.begun >= 0 for one in stack) if element else False
        return Open(
            array,
            key,
            message,
            above.content or key in CONTENT,
            place if element and not nested else -1,
        )

    def string(self, start: int, stop: int, key: bytes, above: Open, level: int) -> None:
        content = above.content or key in CONTENT
        ends = self.data[start : start + 1] + self.data[stop - 1 : stop]
        if not level and key != b":" and ends in (b"{}", b"[]"):
            kept = len(self.strings)
            if self.walk(start, stop, 1, Open(False, b"", above.message, content)):
                return
            del self.strings[kept:]
        self.strings.append((start, stop, above.message, key, content))
