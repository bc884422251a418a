"""Shapes of results, where PyTorch's own rules take the sizes of the example for all sizes."""
