"""The store on one machine: SQLite, one module per facet."""
