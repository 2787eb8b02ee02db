"""What a person marked private: which bytes of a record must not be kept.

The rules stand with the hooks, which can import nothing of ours: what they drop and what ingest drops is the same.
"""

from __future__ import annotations

from backstory.hook.private import MOST, elements, everything, marked, spans, text_spans, without

__all__ = ["MOST", "elements", "everything", "marked", "spans", "text_spans", "without"]
