"""Which tasks sessions worked on, and what became of them."""
