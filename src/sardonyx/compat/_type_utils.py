"""Scalar types, by the name that symbolic functions import them from."""

from sardonyx.compat.torch_onnx.jit_scalar_type import JitScalarType

__all__ = ["JitScalarType"]
