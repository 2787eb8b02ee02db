"""Make the vectors of sessions that have none, or old ones: a few sessions at a time, so that
whoever is interrupted goes on from there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from whyfor.capture.faults import log_error
from whyfor.capture.recover import writing
from whyfor.config import Settings
from whyfor.files import make_folders, replace
from whyfor.locks import LOCK_WAIT, hold_lock
from whyfor.model.errors import BadInput, Busy, NotFound, StoreError, WhyforError
from whyfor.model.memory import WaitingSession
from whyfor.model.progress import Announce
from whyfor.model.vectors import SessionVectors, VectorCounts
from whyfor.recall.embeddings.encoder import TextEncoder, open_encoder
from whyfor.recall.embeddings.models import is_installed, model_file, model_id
from whyfor.recall.embeddings.nearest import pack_vectors
from whyfor.recall.embeddings.numbers import has_packages, numpy
from whyfor.recall.embeddings.settings import (
    BUILT_IN,
    SemanticSettings,
    built_in_folder,
    models_folder,
    semantic_settings,
)
from whyfor.recall.embeddings.turn_texts import TurnText, turn_texts
from whyfor.recall.embeddings.weights import find_weights, read_weights
from whyfor.store.open import reading
from whyfor.store.protocol import SharedStore

SAVED_TEXTS = 48  # after which what was made is stored: under a second of work
_SLICE = 8  # texts between two rests
_BUSY_SHARE = 0.2  # of one core, in the background
_LOOK = 30.0  # seconds between two looks for new sessions
_AFTER_INGEST = 20  # sessions that an ingest nobody watches makes vectors of
_BUSY = "another process is making vectors"

Rest = Callable[[float], None]


class VectorIndexState(msgspec.Struct, frozen=True, kw_only=True):
    """What there is of search by meaning on this machine."""

    model: str  # as the settings name it
    installed: bool  # the packages are there
    ready: bool  # it can be used: the model is there, and some sessions have vectors
    sessions: int = 0
    vectors: int = 0
    waiting: int = 0  # sessions without vectors, or with old ones
    vector_bytes: int = 0
    model_bytes: int = 0
    trouble: str = ""  # why it cannot be used; empty: it can, or nobody asked for it
    hint: str = ""


class IndexRound(msgspec.Struct, frozen=True):
    """What was done: of so many sessions and turns vectors were made, in so many seconds of
    computing."""

    sessions: int
    vectors: int
    seconds: float


# -- the built-in model --------------------------------------------------------------------------


def make_built_in(settings: Settings) -> None:
    """Make the built-in model from its weights, unless it is there and can be used; raises
    NotFound if the weights are not installed."""
    try:
        open_encoder(settings)
    except (BadInput, NotFound):
        _build(settings)


def _build(settings: Settings) -> None:
    from whyfor.recall.embeddings.minilm import build_minilm  # once

    source = find_weights()
    made = build_minilm(read_weights(source / "model.safetensors"))
    folder = built_in_folder(settings)
    try:
        _remove_models(settings)
        make_folders(folder)
        replace(folder / "vocab.txt", (source / "vocab.txt").read_bytes())
        replace(folder / "model.onnx", made)  # last: with it the model is there
    except OSError as error:
        raise StoreError(
            f"cannot write to {folder}: {error.strerror}", "Check permissions and free space."
        ) from None


# -- what there is -------------------------------------------------------------------------------


def index_state(settings: Settings, store: SharedStore | None) -> VectorIndexState:
    """Return what there is, without loading a model; `store`: None if nothing is stored."""
    try:
        wished = semantic_settings(settings)
    except BadInput as error:
        return _state("?", installed=False, trouble=error)
    if not is_installed(wished):
        return _state(wished.model, installed=False)
    try:
        known = model_id(settings, wished)
        size = _model_bytes(settings, wished)
    except NotFound as error:
        return _state(wished.model, installed=True, trouble=error)
    counts = store.vectors.count(known) if store else VectorCounts()
    return VectorIndexState(
        model=wished.model,
        installed=True,
        ready=counts.sessions > 0,
        sessions=counts.sessions,
        vectors=counts.vectors,
        waiting=counts.waiting,
        vector_bytes=counts.bytes,
        model_bytes=size,
    )


def _model_bytes(settings: Settings, wished: SemanticSettings) -> int:
    """Return the size of a model's file; 0 if it has none, or is not made yet."""
    if wished.is_url:
        return 0
    if wished.model == BUILT_IN and not (built_in_folder(settings) / "model.onnx").exists():
        return 0
    return model_file(settings, wished).stat().st_size


def _state(model: str, *, installed: bool, trouble: WhyforError | None = None) -> VectorIndexState:
    return VectorIndexState(
        model=model,
        installed=installed,
        ready=False,
        trouble=trouble.message if trouble else "",
        hint=trouble.hint if trouble else "",
    )


def check_model(settings: Settings, state: VectorIndexState) -> VectorIndexState:
    """Return the state with what is wrong with the model, if something is, after one try; a server
    is not asked."""
    if not state.installed or not state.model_bytes:
        return state
    try:
        open_encoder(settings).encode(["whyfor"])
    except WhyforError as error:
        return msgspec.structs.replace(state, ready=False, trouble=error.message, hint=error.hint)
    return state


# -- vectors -------------------------------------------------------------------------------------


def make_vectors(
    settings: Settings,
    *,
    most: int | None = None,
    announce: Announce | None = None,
    rest: Rest | None = None,
    stop: threading.Event | None = None,
) -> IndexRound:
    """Make vectors of the sessions that wait, newest first, `most` at most. Raises MissingExtra,
    NotFound, BadInput or a model's error; what was made before stays. `rest` is called now and then
    with the seconds of computing since it was last called."""
    with _alone(settings):
        wished = semantic_settings(settings)
        if wished.model == BUILT_IN:
            make_built_in(settings)
        work = _Work(settings, open_encoder(settings), rest)
        return work.run(most, announce, stop)


def clear_vectors(settings: Settings) -> None:
    """Delete all vectors; of the built-in model also the model, which is then made anew."""
    with _alone(settings), writing(settings, LOCK_WAIT) as store:
        with store.transaction():
            store.vectors.clear()
        _remove_models(settings)


def _remove_models(settings: Settings) -> None:
    """Remove what was made here before, also by other versions."""
    for path in models_folder(settings).glob("*/*"):
        path.unlink()
    for folder in models_folder(settings).glob("*"):
        folder.rmdir()


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    """Hold the lock of those who make vectors; raises Busy."""
    try:
        lock = hold_lock(settings.home / "semantic.lock")
    except Busy:
        raise Busy(_BUSY, "It does the same work: a server, an ingest or `memory index`.") from None
    with closing(lock):
        yield


class _Work:
    """One run: reads texts, makes vectors, stores them."""

    def __init__(self, settings: Settings, encoder: TextEncoder, rest: Rest | None) -> None:
        self.settings = settings
        self.encoder = encoder
        self.rest = rest
        self.rested = time.thread_time()
        self.begun = self.rested
        self.made: list[tuple[WaitingSession, SessionVectors]] = []
        self.texts = 0  # that wait to be stored
        self.sessions = self.vectors = 0

    def run(
        self, most: int | None, announce: Announce | None, stop: threading.Event | None
    ) -> IndexRound:
        with reading(self.settings) as store:
            waiting = store.vectors.waiting(self.encoder.model, most)
        advance = announce(len(waiting)) if announce else None
        for session in waiting:
            if stop is not None and stop.is_set():
                break
            self._take(session)
            if self.texts >= SAVED_TEXTS:
                self._store()
            if advance:
                advance(1)
        self._store()
        seconds = time.thread_time() - self.begun
        return IndexRound(self.sessions, self.vectors, round(seconds, 3))

    def _take(self, session: WaitingSession) -> None:
        """Make the vectors of one session; those of texts that have not changed are kept."""
        with reading(self.settings) as store:
            known = store.sessions.by_number([session.number]).get(session.number)
            if known is None:
                return
            events = store.conversation.events(session.number, session.first_seq)
            texts = turn_texts(known.title or "", events)
            former = store.vectors.load(self.encoder.model, [session.number])
        matrix = self._matrix(texts, former.get(session.number))
        marks = [each.mark for each in texts]
        self.made.append((session, pack_vectors(self.encoder.model, marks, matrix)))
        self.texts += len(texts)

    def _matrix(self, texts: list[TurnText], former: SessionVectors | None) -> Any:
        np = numpy()
        kept = _former_rows(former)
        fresh = [each for each in texts if each.mark.digest not in kept]
        for start in range(0, len(fresh), _SLICE):
            part = fresh[start : start + _SLICE]
            made = self.encoder.encode([each.text for each in part])
            kept |= {each.mark.digest: row for each, row in zip(part, made, strict=True)}
            self._have_rest()
        self.vectors += len(fresh)
        return np.array([kept[each.mark.digest] for each in texts], dtype="f4")

    def _have_rest(self) -> None:
        if self.rest is not None:
            self.rest(time.thread_time() - self.rested)
            self.rested = time.thread_time()

    def _store(self) -> None:
        if not self.made:
            return
        with writing(self.settings, LOCK_WAIT) as store, store.transaction():
            for session, vectors in self.made:
                self.sessions += store.vectors.save(session, vectors)
        self.made.clear()
        self.texts = 0


def _former_rows(former: SessionVectors | None) -> dict[bytes, Any]:
    """Return the numbers of vectors that were stored, by the digests of their texts."""
    if former is None or not former.turns:
        return {}
    np = numpy()
    rows = np.frombuffer(former.codes, dtype="i1").reshape(len(former.turns), -1).astype("f4")
    return {mark.digest: row for mark, row in zip(former.turns, rows, strict=True)}


# -- with nobody watching ------------------------------------------------------------------------


def wants_background(settings: Settings) -> bool:
    """Return whether vectors are to be made without being asked for: the packages are there, and
    somebody has made the model, or named another one."""
    if not has_packages("numpy"):
        return False
    try:
        wished = semantic_settings(settings)
    except WhyforError:
        return False
    made = wished.model != BUILT_IN or (built_in_folder(settings) / "model.onnx").exists()
    return made and is_installed(wished)


def index_in_background(settings: Settings, stop: threading.Event) -> None:
    """Make vectors while a server runs, until `stop` is set, with a fifth of a core; an error goes
    to a file, and nothing is tried again before the settings change."""
    while not stop.is_set():
        if not _quiet_round(settings, rest=lambda used: _yield_core(used, stop), stop=stop):
            return
        stop.wait(_LOOK)


def _yield_core(used: float, stop: threading.Event) -> None:
    stop.wait(used * (1 / _BUSY_SHARE - 1))


def index_after_ingest(settings: Settings) -> None:
    """Make vectors of the few newest sessions, if others have some."""
    try:
        with reading(settings) as store:
            wanted = store.vectors.exist(model_id(settings, semantic_settings(settings)))
    except WhyforError:
        return
    if wanted:
        _quiet_round(settings, most=_AFTER_INGEST)


def _quiet_round(settings: Settings, **how: Any) -> bool:
    """Return whether it is worth trying again."""
    try:
        make_vectors(settings, **how)
    except Busy:
        return True
    except NotFound as error:  # nothing is stored yet
        if not Path(settings.database).exists():
            return True
        log_error(settings, error)
        return False
    except WhyforError as error:
        log_error(settings, error)
        return False
    return True
