"""Write a model in the ONNX format: a few messages of Protocol Buffers, of which ours needs so few
that a package for them is not worth its size. The numbers are those of onnx.proto."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

FLOAT = 1
INT8 = 3
INT64 = 7
_IR_VERSION = 10
_OPSET = 20  # the first with Gelu
_PRODUCER = b"whyfor"
_FLOAT_ATTRIBUTE, _INT_ATTRIBUTE, _INTS_ATTRIBUTE = 1, 2, 7


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _whole(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _bytes(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())


class OnnxGraph:
    """Collects operations and constants, and gives the bytes of the whole model."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: dict[str, bytes] = {}

    def add(
        self, operator: str, inputs: Sequence[str], outputs: str | Sequence[str], **attributes: Any
    ) -> str:
        """Add an operation; return the name of its first output."""
        names = [outputs] if isinstance(outputs, str) else list(outputs)
        node = b"".join(
            [
                *(_text(1, name) for name in inputs),
                *(_text(2, name) for name in names),
                _text(4, operator),
                *(_bytes(5, _attribute(name, value)) for name, value in attributes.items()),
            ]
        )
        self._nodes.append(node)
        return names[0]

    def constant(self, name: str, kind: int, shape: Sequence[int], data: bytes) -> str:
        """Add numbers, little-endian; return their name."""
        sizes = b"".join(_whole(1, size) for size in shape)
        self._constants[name] = sizes + _whole(2, kind) + _text(8, name) + _bytes(9, data)
        return name

    def model(self, inputs: dict[str, int], output: str, width: int) -> bytes:
        """Return the model: inputs by name and kind are matrices of any size, the output is one of
        `width` columns."""
        graph = b"".join(
            [
                *(_bytes(1, node) for node in self._nodes),
                _text(2, "text encoder"),
                *(_bytes(5, constant) for constant in self._constants.values()),
                *(_bytes(11, _value(name, kind, "length")) for name, kind in inputs.items()),
                _bytes(12, _value(output, FLOAT, width)),
            ]
        )
        opset = _text(1, "") + _whole(2, _OPSET)
        head = _whole(1, _IR_VERSION) + _bytes(2, _PRODUCER)
        return head + _bytes(7, graph) + _bytes(8, opset)


def _attribute(name: str, value: object) -> bytes:
    if isinstance(value, float):
        import struct

        body = _varint(2 << 3 | 5) + struct.pack("<f", value) + _whole(20, _FLOAT_ATTRIBUTE)
    elif isinstance(value, int):
        body = _whole(3, value) + _whole(20, _INT_ATTRIBUTE)
    else:
        assert isinstance(value, list | tuple)
        body = b"".join(_whole(8, each) for each in value) + _whole(20, _INTS_ATTRIBUTE)
    return _text(1, name) + body


def _value(name: str, kind: int, width: int | str) -> bytes:
    """Return what is said of an input or output: texts are its rows."""
    columns = _whole(1, width) if isinstance(width, int) else _text(2, width)
    shape = _bytes(1, _text(2, "texts")) + _bytes(1, columns)
    tensor = _whole(1, kind) + _bytes(2, shape)
    return _text(1, name) + _bytes(2, _bytes(1, tensor))
