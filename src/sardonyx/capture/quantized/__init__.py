"""Quantized tensors, as integers with their scale beside them."""
