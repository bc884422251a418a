"""Scripted programs about what holds numbers and tensors: strings, tuples, dicts, optionals,
enums and objects."""

from __future__ import annotations

from enum import Enum
from typing import (  # noqa: UP035  torch.jit knows the names of typing
    Any,
    Dict,
    List,
    NamedTuple,
    Optional,
    Tuple,
    Union,
)

import torch
from torch import Tensor, nn

from tests.script.programs_numbers import COUNTED, NUMBERS, SIZES, matrix
