"""Every rule finds its own samples wherever they stand, nothing finds its counter-samples, and
no text is costly."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from urllib.parse import quote

import msgspec
import pytest

from tests.cases import check_each
from whyfor.model.errors import BadInput
from whyfor.privacy.engine import Engine
from whyfor.privacy.rules import AssignmentRule, Rule, compiled, load_rules
from whyfor.privacy.samples import expand

SHIPPED = load_rules().rules
PERSONAL = [rule for rule in load_rules(personal=True).rules if rule not in SHIPPED]
OURS = [*SHIPPED, *PERSONAL]


def _check_each_rule(check: Callable[[Rule], None]) -> None:
    check_each(((f"{rule.id}-{rule.anchors[0].strip()}", rule) for rule in OURS), check)


def _lines(mark: Callable[[int], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(
        mark(number) + line for number, line in enumerate(text.split("\n"), 9)
    )


CARRIERS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "json": lambda text: json.dumps({"content": text}, ensure_ascii=False),
    "diff": _lines(lambda _: "+"),
    "numbered": _lines(lambda number: f"{number:6}→"),
    "url": lambda text: quote(text, safe=""),
}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(load_rules())


@pytest.fixture(scope="module")
def forms() -> Engine:
    return _forms(SHIPPED)


@pytest.fixture(scope="module")
def personal() -> Engine:
    return Engine(load_rules(personal=True))


def _alone(rule: Rule) -> Engine:
    return _forms([rule])


def _forms(rules: list[Rule]) -> Engine:
    """What these rules find, without the names that promise a secret."""
    return Engine(msgspec.structs.replace(load_rules(), rules=rules, names=[], decoys=[]))


def _left(engine: Engine, text: str) -> tuple[str, set[str]]:
    """What is left of a text without what was found in it, and by which rules."""
    data = text.encode()
    found = engine.find(data)
    for finding in reversed(found):
        data = data[: finding.start] + b"*" + data[finding.end :]
    return data.decode(), {finding.rule for finding in found}


def _secret(rule: Rule, sample: str) -> str:
    (finding, *_) = _alone(rule).find(sample.encode())
    return sample.encode()[finding.start : finding.end].decode()


def test_a_rule_finds_its_samples_wherever_they_stand(engine: Engine, personal: Engine) -> None:
    def check(rule: Rule) -> None:
        for template in rule.match:
            sample = expand(template)
            secret = _secret(rule, sample)
            for name, carry in CARRIERS.items():
                if name == "url" and "\n" in secret:
                    continue  # a block of lines is never part of an address
                left, rules = _left(personal if rule in PERSONAL else engine, carry(sample))
                assert rule.id in rules, (name, carry(sample))
                for form in {secret, json.dumps(secret)[1:-1], quote(secret, safe="")}:
                    assert form not in left, (name, left)

    _check_each_rule(check)


def test_no_rule_finds_a_counter_sample(engine: Engine, personal: Engine) -> None:
    def check(rule: Rule) -> None:
        finder = personal if rule in PERSONAL else engine
        for template in rule.ignore:
            for name, carry in CARRIERS.items():
                text = carry(expand(template))
                assert finder.find(text.encode()) == [], (name, text)

    _check_each_rule(check)


def test_a_name_gives_its_samples_away_and_no_counter_sample(engine: Engine) -> None:
    def check(kind: AssignmentRule) -> None:
        for template in kind.match:
            left, rules = _left(engine, expand(template))
            assert kind.id in rules or rules, template
            assert left != expand(template)
        for template in kind.ignore:
            assert engine.find(expand(template).encode()) == [], template

    check_each(((f"{kind.id}-{kind.words[0]}", kind) for kind in load_rules().names), check)


def test_a_rule_says_what_it_is() -> None:
    def check(rule: Rule) -> None:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.id)
        assert rule.title
        assert rule.match
        assert any(other.ignore for other in OURS if other.id == rule.id)
        for template in rule.match:
            assert any(anchor in expand(template).lower() for anchor in rule.anchors)

    _check_each_rule(check)


def test_no_rule_is_there_twice() -> None:
    seen = [(rule.id, rule.pattern, tuple(rule.anchors)) for rule in OURS]
    assert len(seen) == len(set(seen))


def test_the_home_folder_becomes_a_tilde() -> None:
    assert {rule.id for rule in OURS if rule.replace == "~"} == {"home-folder"}
    assert (
        _secret(next(r for r in PERSONAL if r.id == "home-folder"), "cd /home/alice/x")
        == "/home/alice"
    )


# -- a name near by ------------------------------------------------------------------------------

NEAR = Rule(id="acme-key", title="Acme", anchors=["acme"], near=True, pattern="[0-9a-f]{40}")
VALUE = expand("{h40}")


@pytest.mark.parametrize(
    "text",
    [
        "acme={}",
        "ACME_API_KEY: {}",
        'acmeToken := "{}"',
        "acme_key ?= '{}'",
        "acme_key :::= `{}`",
        '$acmeKey .= "{}"',
        '"acme" => "{}"',
        '{{"acme_key": "{}"}}',
        r"{{\"acme_key\": \"{}\"}}",
        r"{{\\\"acme_key\\\": \\\"{}\\\"}}",
        'var acmeKey string = "{}"',
        'myAcmeKey = "{}"',
        "<acmeKey>\n    {}\n</acmeKey>",
        'System.setProperty("ACME_KEY", "{}")',
        '- name: ACME_KEY\n  value: "{}"',
        "the acme token is {}",
        "acme key {}",
        "X-Acme-Key: {}",
        'new Acme("{}")',
        "Authorization: Acme token {}",
        r"x\nACME_KEY={}\nOTHER=1",
        "| acme key | {} |",
        '<add name="acme" value="{}"/>',
    ],
)
def test_a_value_is_known_by_the_name_before_it(text: str) -> None:
    left, rules = _left(_alone(NEAR), text.format(VALUE))
    assert rules == {"acme-key"}
    assert VALUE not in left


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "acme {}",
        "acme/{}.js",
        "acme_commit: {}",
        "acme-sha1: {}",
        "acme_project_id: {}",
        "acmeChannelId = '{}'",
        "acme_checksum = '{}'",
        "pacme_key={}",
        "acme_key={}00",
        "acme_key={}-1",
        "acme was here.\nkey={}",
        "acme and a very long piece of prose that goes on and on: {}",
        "acme_key=sha1:{}",
    ],
)
def test_a_name_that_does_not_give_the_value_says_nothing(text: str) -> None:
    assert _alone(NEAR).find(text.format(VALUE).encode()) == []


@pytest.mark.parametrize(
    "name",
    [
        "AccessKey",
        "todoSecret",
        "legacyPassword",
        "policy_key",
        "taskAuthToken",
        "compatKey2Secret",
    ],
)
def test_no_anchor_hides_a_name_that_promises_a_secret(name: str, engine: Engine) -> None:
    value = expand("{A32}")
    assert value not in _left(engine, f'{name} = "{value}"')[0]


def test_a_second_secret_right_after_the_first_is_found_too(engine: Engine) -> None:
    keys = [expand("{h32}-us") + "14", expand("{h31}a-us") + "15"]
    left, _ = _left(engine, ",".join(keys))
    assert not any(key in left for key in keys)


# -- what is no secret ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "template",
    [
        '"integrity": "sha512-{b86}=="',
        "golang.org/x/net v0.1.0 h1:{b43}=",
        "commit {h40}",
        "index {h7}..{h7} 100644",
        "sha256:{h64}",
        "toolu_{A24}",
        "msg_{A24}",
        "req_{A24}",
        "call_{A24}",
        "chatcmpl-{A29}",
        '"uuid":"{uuid}"',
        'checksum = "{h64}"',
        "main.{h8}.chunk.js",
        "data:image/png;base64,iVBORw0KGgo{b400}",
        '"signature":"{b344}"',
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5{b48} me@host",
        "/app/static/media/logo.{h32}.svg",
        'resolution: "left-pad@npm:1.3.0"\n  checksum: {h128}',
        'ETag: "{h32}"',
        "trace_id={h32}",
        "test_discord_client_2024_returns_403",
        "from sentry_sdk.integrations import x{d6}",
        "linear-gradient(90deg, #{h6}, #{h6})",
        "registry.example.org/app@sha256:{h64}",
        "cache/sonar/{h40}/x",
        "jira: PROJ-{d4}",
        "discord.js@14.{d2}.{d2}",
        "okta:0.0.1-{h7}",
    ],
)
def test_what_the_tools_of_a_developer_print_is_left_alone(template: str, forms: Engine) -> None:
    for carry in CARRIERS.values():
        assert forms.find(carry(expand(template)).encode()) == []


# -- cost ----------------------------------------------------------------------------------------

_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")


def test_nothing_unbounded_is_repeated_in_a_pattern() -> None:
    """A quantifier without an end may follow a character or a class, never after a group, which
    may hold another."""

    def check(rule: Rule) -> None:
        bare = re.sub(r"\\.", "e", _CLASS.sub("c", compiled(rule).pattern.decode("latin-1")))
        assert re.search(r"\)(?:[*+]|\{\d*,\})", bare) is None

    _check_each_rule(check)


_FILLERS = (
    b"a",
    b"0",
    b"A1b2",
    b"a.",
    b"a-",
    b" ",
    b"\t ",
    b"\\",
    b'\\"',
    b'"',
    b"\n+",
    b"\\n",
    b"=",
    b": ",
    b"/",
)


def test_one_look_is_cheap_whatever_stands_there() -> None:
    """A look reads no further than the rule says; here the text is made to keep it busy all that
    way."""

    def check(rule: Rule) -> None:
        alone = _alone(rule)
        anchor = rule.anchors[0].encode()
        sample = expand(rule.match[0]).encode()
        for filler in (*_FILLERS, anchor, sample[:-1], sample[-9:]):
            around = filler * (rule.after // len(filler) + 1)
            text = around[-rule.before :] * (rule.before > 0) + anchor + around
            start = time.process_time()
            alone.find(text)
            assert time.process_time() - start < 0.25, filler

    _check_each_rule(check)


def test_hostile_text_costs_in_proportion_to_its_size(engine: Engine) -> None:
    anchors = "".join(
        f"{anchor}{anchor} = " for rule in SHIPPED for anchor in rule.anchors[:2]
    ).encode()

    def cost(times: int) -> float:
        start = time.process_time()
        engine.find(anchors * times)
        return time.process_time() - start

    cost(1)
    assert cost(16) < 12 * cost(4)


# -- rules that are not right --------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"check": "nothing-such"},
        {"anchors": []},
        {"anchors": ["Acme"]},
        {"anchors": [""]},
        {"pattern": "(acme"},
        {"pattern": "[a", "near": True},
    ],
)
def test_a_rule_that_cannot_work_is_refused(given: dict[str, object]) -> None:
    fields: dict[str, object] = {
        "id": "acme",
        "title": "Acme",
        "anchors": ["acme"],
        "pattern": "acme_[a-z]{8}",
        **given,
    }
    with pytest.raises(BadInput, match="acme"):
        load_rules(own=[Rule(**fields)])  # type: ignore[arg-type] # the fields are what the table above says
