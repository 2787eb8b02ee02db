"""The parts of messages and tool outputs: texts, images, JSON inside a string."""

from __future__ import annotations

from typing import Any

import msgspec

from whyfor.agents.base import as_dict, as_list, as_str, get_str
from whyfor.model.findings import Record


def texts(parts: object) -> str:
    return "\n".join([text for part in as_list(parts) if (text := get_str(as_dict(part), "text"))])


def decode_arguments(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def image_data(part: Record, index: int, path: str | None = None) -> Record:
    """Describe an image: its type and size. The bytes stay in the segment."""
    url = part.get("image_url")
    head, _, data = (as_str(url) or get_str(as_dict(url), "url")).partition(",")
    found: Record = {"block": index, "type": "image"}
    if head.startswith("data:"):
        found |= {"media_type": head[5:].partition(";")[0], "bytes": len(data) * 3 // 4}
    elif head:
        found["url"] = f"{head},{data}" if data else head
    if path is not None:
        found["path"] = path
    return found
