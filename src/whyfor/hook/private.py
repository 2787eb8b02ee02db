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
    b"entrypoint projectHash action_id createdAt created_at created_timestamp method "
    b"parent_session_id sessionUpdate source time ts updatedAt".split()
)
# Below these everything is what somebody said or did.
CONTENT = frozenset(
    b"input arguments args parameters toolUseResult tool_input tool_response tool_result result "
    b"results resultDisplay "
    b"output changes".split()
)


def spans(data: bytes, lists: frozenset[bytes] = frozenset()) -> list[tuple[int, int]] | None:
    """Return the private ranges of a JSON text in order: from, to. Each is inside one string. None
    if it is not JSON.

    `lists` names arrays whose elements are messages of their own.
    """
    return reach(data, lists, 0)[0]


def reach(
    data: bytes, lists: frozenset[bytes], depth: int
) -> tuple[list[tuple[int, int]] | None, int, bool]:
    """Return the same for a record whose message has `depth` tags open from earlier records; also
    how many are open after it, and whether it closed one of those."""
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
    """Return the same for a text that is not JSON: it is one string."""
    return merged(of_message(data.lower(), [(0, len(data), 0, b"", True)], 0)[0])


def everything(data: bytes) -> list[tuple[int, int]]:
    """Return the ranges of all text in a JSON document, so that only its structure is left. From
    where it stops being JSON, everything counts as text."""
    text = Json(data, frozenset())
    said = [(part[0], part[1]) for part in text.strings if is_said(data, part)]
    if not text.sound:
        said.append((max([part[1] for part in text.strings] or [0]), len(data.rstrip(b"\r\n"))))
    return merged(said)


def elements(data: bytes, lists: frozenset[bytes]) -> list[tuple[int, int]]:
    """Return the ranges of the messages in the named lists."""
    return Json(data, lists).elements


def marked(data: bytes) -> bool:
    """Return whether there is a tag at all; fast if the word does not occur."""
    lower = data.lower()
    at = 0
    # of the word only its beginning, which is found in half the time: the rest of its letters are
    # the most frequent ones
    while (word := lower.find(b"priv", at)) >= 0:
        floor, at = at, word + 4
        if not lower.startswith(b"private", word):
            continue
        at = word + 7
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
    """Find the private ranges of one message. A tag that is never closed reaches to the end of its
    string, unless a later string of the message closes it.

    `depth` is the number of tags that earlier strings opened. Also return how many are open at the
    end, and whether one of the earlier ones was closed.

    After the last tag that is honoured nothing more is read: then the whole text of the message is
    private, and so is what an earlier record of it left open.
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
    """Return whether a string is text, not a name or id that the structure needs."""
    start, stop, _, key, content = part
    if content:
        return True
    if key == b":":
        return False  # is itself a key
    return key not in STRUCTURE or stop - start > 200 or b" " in data[start:stop]


# -- tags ----------------------------------------------------------------------------------------


def tags(lower: bytes, start: int, stop: int, most: int = 0) -> list[tuple[int, int, bool]]:
    """Return the tags in one string: from, to, whether it closes. Their brackets may be escaped,
    also twice.

    With `most`, stop after that many opening tags.
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
    """Return where the tag around this word begins, and whether it closes; -1 if there is no
    tag."""
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
    """Return the end of the tag whose name ends here; -1 if it is not a tag, or an empty one:
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
    """Return where the blanks before a place begin; escaped blanks count too."""
    for _ in range(BLANKS):
        if at > floor and lower[at - 1] in b" \t\r\n":
            at -= 1
        elif at - 1 > floor and lower[at - 1] in b"ntr" and lower[at - 2] == 92:
            at = backslashes(lower, at - 1, floor)
        else:
            break
    return at


def backslashes(data: bytes, stop: int, floor: int) -> int:
    """Return where the run of backslashes that ends here begins."""
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

    def __init__(self, array: bool, key: bytes, message: int, content: bool) -> None:
        self.array = array
        self.key = key
        self.message = message
        self.content = content
        self.begun = -1  # where it begins, if it is an element of a named list


class Json:
    """One or several JSON values in a row. A string that contains JSON is walked too, one level
    deep. `privacy/json_spans.py` has a twin, and a test compares the two."""

    def __init__(self, data: bytes, lists: frozenset[bytes]) -> None:
        self.data = data
        self.lists = lists
        self.strings: list[String] = []
        # of the named lists, in which each is a message: from, to
        self.elements: list[tuple[int, int]] = []
        self.messages = 0
        self.sound = Walk(self, Open(False, b"", 0, False), 0).run(0, len(data))

    def string(self, start: int, stop: int, key: bytes, above: Open, level: int) -> None:
        content = above.content or key in CONTENT
        ends = self.data[start : start + 1] + self.data[stop - 1 : stop]
        if not level and key != b":" and ends in (b"{}", b"[]"):
            kept = len(self.strings)
            if Walk(self, Open(False, b"", above.message, content), 1).run(start, stop):
                return
            del self.strings[kept:]
        self.strings.append((start, stop, above.message, key, content))


class Walk:
    """Reads one text from string to string; `level` is how many times its quotes are escaped."""

    __slots__ = ("json", "key", "level", "stack", "want")

    def __init__(self, json: Json, outer: Open, level: int) -> None:
        self.json = json
        self.level = level
        self.stack = [outer]
        self.key = b""
        self.want = VALUE

    def run(self, at: int, stop: int) -> bool:
        """Return whether all of it is JSON."""
        data = self.json.data
        extra = self.level  # backslashes that belong to a quote
        while (quote := self.quote(at, stop)) >= 0:
            if not self.marks(data[at : quote - extra], at):
                return False
            at = self.string(quote + 1, stop)
            if at < 0:
                return False
        return self.marks(data[at:stop], at) and len(self.stack) == 1 and self.want == NEXT

    def quote(self, at: int, stop: int) -> int:
        """Return the next quote of this level; -1 if there is none."""
        data = self.json.data
        while (found := data.find(b'"', at, stop)) >= 0:
            run = found - backslashes(data, found, at)
            if self.level:
                if run % 2 == 0:
                    return -1
                run //= 2
            if run % 2 == 0:
                return found
            at = found + 1
        return -1

    def string(self, start: int, stop: int) -> int:
        """Read the string that begins here; return where reading continues, -1 if no string may be
        here."""
        end = self.quote(start, stop)
        if end < 0 or self.want > KEY:
            return -1
        last = end - self.level
        if self.want == KEY:
            self.json.string(start, last, b":", self.stack[-1], self.level)
            self.key = self.json.data[start:last]
            self.want = COLON
        else:
            self.json.string(start, last, self.key, self.stack[-1], self.level)
            self.want = NEXT
        return end + 1

    def marks(self, between: bytes, at: int) -> bool:
        """Read what is between two strings; return whether it may be there."""
        if between == b":" and self.want == COLON:  # by far the most frequent
            self.want = VALUE
            return True
        if self.level:
            for blank in (b"\\n", b"\\t", b"\\r"):
                between = between.replace(blank, b"  ")
        scalar = False  # whether the byte before belongs to a number or a word
        for place, mark in enumerate(between, at):
            if mark in SCALAR:
                if self.want != VALUE and not scalar:
                    return False
                self.want = NEXT
                scalar = True
                continue
            scalar = False
            if mark not in BLANK and not self.mark(mark, place):
                return False
        return True

    def mark(self, mark: int, place: int) -> bool:
        if mark == 44:  # a comma
            expected = self.want == NEXT and len(self.stack) > 1
            self.expect_item()
            return expected
        if mark == 58:  # a colon
            expected = self.want == COLON
            self.want = VALUE
            return expected
        if mark in b"{[":
            return self.open(mark == 91, place)
        return mark in b"}]" and self.close(mark == 93, place)

    def expect_item(self) -> None:
        self.key = b""
        self.want = VALUE if self.stack[-1].array else KEY

    def open(self, array: bool, place: int) -> bool:
        if self.want != VALUE and (self.want != NEXT or len(self.stack) > 1):
            return False
        json, above = self.json, self.stack[-1]
        opened = Open(array, self.key, above.message, above.content or self.key in CONTENT)
        element = above.array and above.key in json.lists
        if element or not above.message:
            json.messages += 1
            opened.message = json.messages
        if element and all(one.begun < 0 for one in self.stack):
            opened.begun = place
        self.stack.append(opened)
        self.expect_item()
        return True

    def close(self, array: bool, place: int) -> bool:
        if self.want == COLON or len(self.stack) == 1 or self.stack[-1].array != array:
            return False
        begun = self.stack.pop().begun
        if begun >= 0 and not self.level:
            self.json.elements.append((begun, place + 1))
        self.key = b""
        self.want = NEXT
        return True
