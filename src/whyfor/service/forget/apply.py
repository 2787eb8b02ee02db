"""Carrying out the plan of a forget: what its marker and the new journal say."""

from __future__ import annotations

from whyfor.capture.forget import PendingForget, begin_forget, finish_forget
from whyfor.config import Settings
from whyfor.model.times import wall_clock
from whyfor.service.forget.checkpoints import rewrite_checkpoints
from whyfor.service.forget.plan import ForgetPlan
from whyfor.store.journal import ForgottenEntry, Journal
from whyfor.store.protocol import Store
from whyfor.store.tombstones import merge_forgotten


def apply_plan(settings: Settings, store: Store, plan: ForgetPlan) -> bool:
    """Forget what the plan says, under the ingest lock; False if a reader that is still open
    keeps bytes in use, which the next ingest removes."""
    pending = _pending(settings, store, plan)
    rewrite = rewrite_checkpoints(settings, store, plan, pending)
    tombstone = _tombstone(plan, rewrite.lost)
    pending.at = tombstone.at
    pending.commits = rewrite.changed
    begin_forget(settings, pending, [*rewrite.entries, tombstone])
    return finish_forget(settings, store)


def _pending(settings: Settings, store: Store, plan: ForgetPlan) -> PendingForget:
    facet = store.forget
    request, pattern = plan.request, plan.request.pattern
    titles = set(plan.found.titles)
    if pattern is not None:
        titles |= {key for key, title in facet.titles().items() if pattern.said_in(title)}
    # a title may stand in another file than the session it names
    again = facet.descendants(plan.touched() | facet.sessions_with(titles)) - request.sessions
    unplaced = []
    if pattern is not None:
        folders = facet.folders(again)
        unplaced = [name for name, folder in folders.items() if pattern.said_in(folder)]
    return PendingForget(
        number=Journal(settings.journal).end().number,
        sessions=sorted(request.sessions),
        again=sorted(again),
        unplaced=sorted(unplaced),
        titles=sorted(titles),
        signals=facet.signal_ids(plan.signals),
        spool=plan.spool,
    )


def _tombstone(plan: ForgetPlan, lost: list[str]) -> ForgottenEntry:
    """Return the journal's entry: all that was ever forgotten, this included."""
    tombstone = merge_forgotten(
        plan.former,
        ForgottenEntry(
            at=max(wall_clock(), plan.former.at + 1),
            sessions=[f"{agent}:{ident}" for agent, ident in plan.request.sessions],
            commits=list(plan.request.commits),
            lost=lost,
            records={name: list(digests) for name, digests in plan.found.hidden.items()},
            strings=list(plan.found.strings),
        ),
    )
    if tombstone.records or tombstone.strings:
        mark = ForgottenEntry(0, strings=[plan.found.tombstones.mark])
        tombstone = merge_forgotten(tombstone, mark)
    return tombstone
