"""Stage 4: the same model, cheaper. One pass per file; `pipeline` runs them."""
