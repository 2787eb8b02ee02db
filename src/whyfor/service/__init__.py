"""The verbs of the product, one module per verb family; the only thing faces may call."""
