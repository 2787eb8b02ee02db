"""Search finds every stored thing, ranks sensibly, and says where the words stand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor import config
from whyfor.model.query import SessionFilter
from whyfor.service.search import HitRange
from whyfor.service.search import search as find

Cli = Callable[..., Result]


@pytest.fixture
def search(cli: Cli) -> Callable[..., list[dict[str, Any]]]:
    def run(*arguments: str) -> list[dict[str, Any]]:
        result = cli("search", *arguments, "--json")
        assert result.code == 0, result.out
        found = result.json
        assert isinstance(found, list)
        return found

    return run


@pytest.fixture
def shop(home: Path, cli: Cli) -> dict[str, Transcript]:
    made = {
        name: Transcript(name, day=day)
        for name, day in (("retry", "2026-05-01"), ("later", "2026-05-09"))
    }
    retry = made["retry"]
    retry.prompt("The payment webhook times out sometimes")
    retry.think("Perhaps a kingfisher of a bug: idempotency keys are missing")
    retry.call(
        "Read", {"file_path": "/code/shop/src/pay/webhook.py"}, "def handle_event(payload): ..."
    )
    retry.call(
        "Bash",
        {"command": "git commit -m 'Retry the payment webhook with backoff'"},
        "[main abc1234]",
    )
    retry.say(
        "Retries wait with exponential backoff, naïvely at first. See `retry_policy.max_attempts`."
    )
    retry.prompt("Thanks. Now the invoices")
    retry.say("Invoices are rendered by the zebra-striped table component.")
    later = made["later"]
    later.prompt("What happened lately?")
    later.call(
        "Bash",
        {"command": "git log --oneline"},
        "abc1234 Retry the payment webhook with backoff\nfff0000 Init",
    )
    later.say("Two commits.")
    for transcript in made.values():
        transcript.save(home)
    cli("ingest")
    return made


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        (["webhook", "payment"], "user.prompt"),
        (["kingfisher"], "assistant.thinking"),
        (['"exponential backoff"'], "assistant.message"),
        (["retry_policy.max_attempts"], "assistant.message"),
        (["src/pay/webhook.py"], "tool.call"),
        (["handle_event(payload)"], "tool.result"),
        (["naively"], "assistant.message"),
        (["NAÏVELY"], "assistant.message"),
        (["idempot*"], "assistant.thinking"),
        (["kingfisher", "OR", "albatross"], "assistant.thinking"),
        (["file:pay/webhook.py"], "user.prompt"),
        (["file:webhook.py", "timeout", "OR", "times"], "user.prompt"),
        (["tool:Read", "handle_event"], "tool.result"),
        (["tool:Bash", "commit"], "tool.call"),
    ],
)
def test_words_are_found_where_they_stand(
    shop: dict[str, Transcript],
    search: Callable[..., list[dict[str, Any]]],
    query: list[str],
    kind: str,
) -> None:
    best = search(*query)[0]
    assert best["session_id"] == shop["retry"].session_id
    assert (best["turn"], best["kind"]) == (1, kind)


def test_hits_have_every_promised_field_and_a_snippet_with_the_word(
    shop: dict[str, Transcript], search: Callable[..., list[dict[str, Any]]]
) -> None:
    (hit,) = search("zebra")
    assert set(hit) == set(
        "type agent session_id seq turn kind created_at project title snippet score "
        "found_in copies passages notes from".split()
    )
    assert "zebra-striped" in hit["snippet"]
    assert hit["turn"] == 2


def test_what_was_done_outranks_what_a_later_log_printed(
    shop: dict[str, Transcript], search: Callable[..., list[dict[str, Any]]]
) -> None:
    found = search("Retry the payment webhook with backoff")
    assert [hit["session_id"] for hit in found] == [
        shop["retry"].session_id,
        shop["later"].session_id,
    ]
    assert found[0]["score"] > found[1]["score"]


def test_a_turn_is_at_most_one_hit(
    shop: object, search: Callable[..., list[dict[str, Any]]]
) -> None:
    found = search("webhook")
    assert len({(hit["session_id"], hit["turn"]) for hit in found}) == len(found)


def test_a_word_to_leave_out_leaves_its_turns_out(
    shop: object, search: Callable[..., list[dict[str, Any]]]
) -> None:
    assert [hit["turn"] for hit in search("retry", "-kingfisher")] == [1]
    assert search("zebra", "-invoices") == []


def test_two_words_in_different_sessions_are_no_hit(
    shop: object, search: Callable[..., list[dict[str, Any]]]
) -> None:
    assert search("kingfisher", "lately") == []


def test_most_of_many_words_are_enough(
    shop: object, search: Callable[..., list[dict[str, Any]]]
) -> None:
    assert search("payment", "webhook", "exponential", "unheardof")[0]["turn"] == 1


def test_the_tool_and_the_words_must_meet_in_one_call(
    shop: object, search: Callable[..., list[dict[str, Any]]]
) -> None:
    assert search("tool:Read", "exponential") == []


@pytest.mark.parametrize(
    ("fields", "hits"),
    [("prompts", 1), ("answers", 0), ("thinking", 0), ("tools", 2), ("prompts,tools", 2)],
)
def test_search_in_some_fields_only(
    shop: object, search: Callable[..., list[dict[str, Any]]], fields: str, hits: int
) -> None:
    assert len(search("webhook", "--in", fields)) == hits


def test_filters_and_order_by_time(
    shop: dict[str, Transcript], search: Callable[..., list[dict[str, Any]]]
) -> None:
    both = [shop["later"].session_id, shop["retry"].session_id]
    assert [hit["session_id"] for hit in search("webhook", "--sort", "time")] == both
    assert [hit["session_id"] for hit in search("webhook", "--since", "2026-05-05")] == both[:1]
    assert [hit["session_id"] for hit in search("webhook", "--until", "2026-05-05")] == both[1:]
    assert search("webhook", "--agent", "codex") == []
    assert len(search("webhook", "--project", "shop", "--limit", "1")) == 1


def test_a_title_is_found_and_leads_to_the_first_prompt(
    home: Path, cli: Cli, search: Callable[..., list[dict[str, Any]]]
) -> None:
    titled = Transcript("titled")
    titled.prompt("Please help")
    titled.lines.append(
        {"type": "ai-title", "aiTitle": "Migrate the albatross", "sessionId": titled.session_id}
    )
    titled.save(home)
    cli("ingest")
    (hit,) = search("albatross")
    assert (hit["kind"], hit["turn"], hit["title"]) == ("user.prompt", 1, "Migrate the albatross")
    assert [
        hit.best.named for hit in find(config.load(), "albatross", SessionFilter(), HitRange(1))
    ] == [True]


def test_every_word_of_every_event_is_found(
    home: Path, cli: Cli, search: Callable[..., list[dict[str, Any]]]
) -> None:
    """Also far into a long turn, whose text is split over several documents."""
    long = Transcript("long")
    long.prompt("Begin")
    for number in range(40):
        long.call(
            "Bash", {"command": f"step{number}x"}, f"filler {'lorem ipsum ' * 500} needle{number}x"
        )
    long.save(home)
    cli("ingest")
    for number in (0, 17, 39):
        assert [hit["kind"] for hit in search(f"needle{number}x")] == ["tool.result"]
        assert [hit["kind"] for hit in search(f"step{number}x")] == ["tool.call"]


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(words=st.text(alphabet=st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=30))
def test_any_text_is_a_query_or_a_clear_error(shop: object, cli: Cli, words: str) -> None:
    result = cli("search", "--json", "--", words)
    assert result.code in (0, 2)
    body = json.loads(result.out)
    assert isinstance(body, list) if result.code == 0 else body["error"]["kind"] == "bad_input"
