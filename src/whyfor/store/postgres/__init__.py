"""The store of a team server: PostgreSQL, every row with the project and the person it is of."""
