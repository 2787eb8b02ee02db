"""Tokens: their form, their checksum, and how long one is remembered."""

from __future__ import annotations

from whyfor.model.accounts import Member
from whyfor.team.tokens import PREFIX, TokenCache, hash_token, is_token, make_token

ANN = Member(1, "Ann", "ann@example.com", 1, "member", 1, "personal", ("read",), None, 0)


def test_a_token_has_a_prefix_and_a_checksum() -> None:
    token = make_token()
    assert token.startswith(PREFIX)
    assert len(token) == 53
    assert is_token(token)
    assert token != make_token()
    wrong = [at for at in range(len(token)) if is_token(token[:at] + "!" + token[at + 1 :])]
    assert wrong == []
    swapped = token[:10] + token[11] + token[10] + token[12:]
    assert is_token(swapped) == (swapped == token)
    assert not is_token(token, "wfs_")
    assert len(hash_token(token)) == 32


def test_a_token_is_remembered_for_ten_seconds_and_forgotten_at_once() -> None:
    asked: list[bytes] = []
    time = [0.0]

    def look_up(digest: bytes, now: int) -> Member | None:
        asked.append(digest)
        return ANN

    cache = TokenCache(look_up, lambda: time[0])
    token = make_token()
    assert [cache.member(token) for _ in range(3)] == [ANN] * 3
    assert len(asked) == 1
    time[0] = 10.1
    cache.member(token)
    assert len(asked) == 2
    cache.drop(2)
    cache.member(token)
    assert len(asked) == 2
    cache.drop(1)
    cache.member(token)
    assert len(asked) == 3
    cache.drop()
    cache.member(token)
    assert len(asked) == 4


def test_a_token_revoked_while_it_is_looked_up_is_not_remembered() -> None:
    asked: list[bytes] = []

    def look_up(digest: bytes, now: int) -> Member | None:
        asked.append(digest)
        if len(asked) == 1:
            cache.drop(1)
        return ANN

    cache = TokenCache(look_up)
    token = make_token()
    cache.member(token)
    cache.member(token)
    assert len(asked) == 2
