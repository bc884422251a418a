"""Operators of other packages, a file per operator namespace, imported when a model uses them."""
