"""What is kept: segments in a blob store, the journal that names them, and the database of
projections."""
