"""Operators with more than one right answer: what is compared is the same for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _values_picked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Which of equal elements is picked is not said: what the indices point to is compared."""

    def call(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        values, indices = function(x, *args, **kwargs)
        if kwargs.get("stable") or x.dim() == 0:
            return values, indices
        axis = kwargs.get("dim", args[_DIM_POSITION[function]] if _has_dim(function, args) else -1)
        reduced = indices.dim() < x.dim()
        places = indices.unsqueeze(axis) if reduced else indices
        return values, torch.gather(x, axis, places)

    return call


_DIM_POSITION = {torch.topk: 1, torch.sort: 0, torch.kthvalue: 1, torch.mode: 0}


def _has_dim(function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    return len(args) > _DIM_POSITION[function] and not isinstance(
        args[_DIM_POSITION[function]], bool
    )


def _argsort(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    indices = torch.argsort(x, *args, **kwargs)
    if kwargs.get("stable") or x.dim() == 0:
        return indices
    dim = kwargs.get("dim", args[0] if args and not isinstance(args[0], bool) else -1)
    return torch.gather(x, dim, indices)


def _eigh(*args: Any, **kwargs: Any) -> Any:
    """Eigenvectors may have any sign, and any basis of a space is one."""
    values, vectors = torch.linalg.eigh(*args, **kwargs)
    return values, (vectors * values.unsqueeze(-2)) @ vectors.mH


def _linalg_svd(*args: Any, **kwargs: Any) -> Any:
    u, s, vh = torch.linalg.svd(*args, **kwargs)
    rank = s.shape[-1]
    return s, (u[..., :rank] * s.unsqueeze(-2)) @ vh[..., :rank, :]


def _svd(*args: Any, **kwargs: Any) -> Any:
    u, s, v = torch.svd(*args, **kwargs)
    if kwargs.get("compute_uv", True) is False:
        return s
    rank = s.shape[-1]
    return s, (u[..., :rank] * s.unsqueeze(-2)) @ v[..., :rank].mH


COMPARED_BY: dict[str, Callable[..., Any]] = {
    "argsort": _argsort,
    "kthvalue": _values_picked(torch.kthvalue),
    "linalg.eigh": _eigh,
    "linalg.svd": _linalg_svd,
    "mode": _values_picked(torch.mode),
    "sort": _values_picked(torch.sort),
    "svd": _svd,
    "topk": _values_picked(torch.topk),
}
