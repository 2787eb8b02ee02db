"""A store as a whole: all or nothing, with the journal or without it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.store.contract.build import NOW, SHOP
from whyfor.model.errors import Disagreement
from whyfor.store.journal import Journal, PlaceEntry
from whyfor.store.open import open_store
from whyfor.store.protocol import Store


def test_a_transaction_that_fails_leaves_nothing(store: Store) -> None:
    changes = store.total_changes()
    with pytest.raises(KeyboardInterrupt), store.transaction():
        store.set_mark("x", 5)
        assert store.in_transaction
        raise KeyboardInterrupt
    assert not store.in_transaction
    assert store.mark("x") == 0
    with store.transaction():
        store.set_mark("x", 5)
    assert store.mark("x") == 5
    assert store.total_changes() > changes


def test_begin_commit_and_rollback_by_hand(store: Store) -> None:
    store.begin()
    store.begin()
    store.set_mark("x", 1)
    store.rollback()
    store.rollback()
    assert store.mark("x") == 0
    store.begin()
    store.set_mark("x", 2)
    store.commit()
    assert store.mark("x") == 2


def test_the_journal_has_it_before_the_store_says_so(store: Store, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    assert store.journal_end() is None
    with store.transaction(journal):
        journal.add(PlaceEntry("/shop", SHOP, NOW))
    assert store.journal_end() == journal.end()
    with pytest.raises(KeyboardInterrupt), store.transaction(journal):
        journal.add(PlaceEntry("/clone", SHOP, NOW))
        raise KeyboardInterrupt
    assert [entry.cwd for entry in journal.entries() if isinstance(entry, PlaceEntry)] == ["/shop"]


def test_nothing_is_written_beside_a_journal_that_is_another(store: Store, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    with store.transaction(journal):
        journal.add(PlaceEntry("/shop", SHOP, NOW))
    end = store.journal_end()
    other = Journal(tmp_path / "other.jsonl")
    with pytest.raises(Disagreement), store.transaction(other):
        store.set_mark("x", 1)
    assert (store.mark("x"), store.journal_end()) == (0, end)
    with store.transaction():
        store.save_journal_end(other.end())
    assert store.journal_end() == other.end()


def test_what_another_has_written_shows_in_the_version(tmp_path: Path) -> None:
    path = tmp_path / "whyfor.db"
    with closing(open_store(path)) as one, closing(open_store(path)) as two:
        before = one.version()
        with one.transaction():
            one.set_mark("x", 1)
        assert one.version() == before
        with two.transaction():
            two.set_mark("x", 2)
        assert one.version() != before
        assert one.mark("x") == 2


def test_a_sound_store_has_no_complaint_and_stays_in_its_place(store: Store) -> None:
    assert store.check() == []
    assert store.check(quick=True) == []
    assert store.in_place()
    store.close()
    store.close()
