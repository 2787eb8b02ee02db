"""Storage: segments (the stored bytes), the journal that lists them, and the database made from
both."""
