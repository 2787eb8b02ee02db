"""The facets of a store, as SQL that does not depend on the database."""
