"""Why a target is missed, by the name of its check; printed under the table only while it is."""

REASONS: dict[str, str] = {
    "common-word search CPU / agentsview's --fts (messages only), daemon running": (
        "a daemon with the database open answers from an index of messages alone, so nearly all of that time is "
        "its client starting; a tenth of it is about what a bare Python interpreter needs to start."
    ),
}
