"""Find sessions by their meaning: a model turns texts into vectors, and near ones mean the like.

Needs the extra `semantic`; nothing here is imported unless it is installed or asked for.
"""
