"""Ask the model of [memory.model] about the sessions that ended, each once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from itertools import islice

from whyfor.capture.faults import log_error
from whyfor.config import Settings
from whyfor.locks import hold_lock
from whyfor.model.errors import BadInput, Busy, WhyforError
from whyfor.model.memory import AskedSession, ModelRound
from whyfor.model.times import wall_clock
from whyfor.recall.model_client import ModelUnreachable
from whyfor.recall.model_notes import (
    DAY,
    QUIET,
    ModelQuestion,
    OverBudget,
    ask_about,
    build_question,
    check_budget,
)
from whyfor.recall.model_settings import ModelSettings, model_settings
from whyfor.store.open import reading_local

MODEL_LIMIT = 5  # sessions in one round
_LOOKED_AT = 20  # sessions for each one that is asked about: in many nothing was said
_BUSY = "another process is asking the model"


def waiting_questions(
    settings: Settings, since: int | None = None, limit: int = MODEL_LIMIT
) -> list[ModelQuestion]:
    """Return what the model would be sent: about sessions that ended in the last day, or since a
    time, and that it was not asked about."""
    now = wall_clock()
    begin = now - DAY if since is None else since
    with reading_local(settings) as store:
        waiting = store.memory.unasked(begin, now - QUIET, _LOOKED_AT * limit)
        found = (build_question(settings, store, session) for session in waiting)
        return list(islice(filter(None, found), limit))


def ask_about_ended(
    settings: Settings,
    since: int | None = None,
    limit: int = MODEL_LIMIT,
    told: Callable[[AskedSession], None] | None = None,
) -> ModelRound:
    """Ask about these sessions, one after the other, until a limit of the settings is reached or
    nobody answers. Raises BadInput if no model is set."""
    wished = model_settings(settings)
    if wished is None:
        raise BadInput("no model is set", "Describe one in config.toml, under [memory.model].")
    try:
        lock = hold_lock(settings.home / "model.lock")
    except Busy:
        return ModelRound([], _BUSY, "It does the same work.")
    with closing(lock):
        return _ask_all(settings, wished, waiting_questions(settings, since, limit), told)


def _ask_all(
    settings: Settings,
    wished: ModelSettings,
    questions: list[ModelQuestion],
    told: Callable[[AskedSession], None] | None,
) -> ModelRound:
    asked: list[AskedSession] = []
    for question in questions:
        session = question.session
        try:
            with reading_local(settings) as store:
                check_budget(store, wished, question, wall_clock())
            call = ask_about(settings, wished, question)
        except (OverBudget, ModelUnreachable) as error:
            return ModelRound(asked, error.message, error.hint)
        asked.append(AskedSession(f"{session.agent}:{session.session_id}", call))
        if told:
            told(asked[-1])
    return ModelRound(asked)


def ask_quietly(settings: Settings) -> None:
    """Do a round on behalf of an ingest that nobody watches: an error goes to a file."""
    if not settings.memory.model or not settings.database.exists():
        return
    try:
        ask_about_ended(settings)
    except WhyforError as error:
        log_error(settings, error)
