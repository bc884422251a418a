"""Strings that are known at run time, as numbers: two are equal where their numbers are.

Such a string has one integer in it, as `f"layer{i}"` does, or is an item of a list of strings. Its
code says what is around the last integer of the string, and which integer that is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from sardonyx.aten.graph import Argument, Value
from sardonyx.aten.type_inference import type_of
from sardonyx.capture.torchscript.types.values import (
    ChosenConstant,
    CodedText,
    ComputedNumber,
    UnknownText,
    is_number,
    number_dtype,
)
from sardonyx.errors import CaptureError

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader

_LAST_INTEGER = re.compile(r"(.*?)(0|[1-9][0-9]*)([^0-9]*)", re.DOTALL)
_INTEGERS = 2**48
"""That a code tells apart."""
_HOLES = re.compile(r"\{\}|%[ds]")


class Texts:
    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader
        self._numbers = reader.numbers
        self._around: dict[tuple[str, ...], int] = {}

    def code(self, text: Argument) -> Argument:
        if isinstance(text, str):
            return self._known_code(text)
        if isinstance(text, CodedText):
            return text.code
        if isinstance(text, ChosenConstant) and all(isinstance(o, str) for o in text.options):
            return self._chosen_code(text)
        if isinstance(text, UnknownText) and text.integer is not None:
            return self._computed_code(*text.integer)
        raise CaptureError(
            "a string is looked for, or compared with one, that is known at run time and is not"
            " one integer with known text around it: compare the numbers that it is made of"
        )

    def _known_code(self, text: str) -> int:
        found = _LAST_INTEGER.fullmatch(text)
        if found is None or int(found[2]) >= _INTEGERS:
            return self._place((text,)) * _INTEGERS
        return self._place((found[1], found[3])) * _INTEGERS + int(found[2])

    def _chosen_code(self, text: ChosenConstant) -> Argument:
        codes = torch.tensor([self._known_code(option) for option in text.options])
        table = Value("codes", type_of(codes), constant=codes)
        place = self._numbers.as_scalar(text.code)
        return ComputedNumber(self._numbers.call(torch.ops.aten.select.int, table, 0, place))

    def _computed_code(self, before: str, number: Argument, after: str) -> Argument:
        self._reader.note(f"strings that are made of an integer are told apart up to {_INTEGERS}")
        compute = self._numbers.compute
        positive, negative = (
            self._place((text, after)) * _INTEGERS for text in (before, f"{before}-")
        )
        is_negative = compute("aten::lt", [number, 0], torch.bool)
        codes = [
            compute("aten::sub", [negative, number], torch.int64),
            compute("aten::add", [number, positive], torch.int64),
        ]
        if isinstance(is_negative, bool):
            return codes[0 if is_negative else 1]
        tensors = [self._numbers.as_tensor(n) for n in (is_negative, *codes)]
        return ComputedNumber(self._numbers.call(torch.ops.aten.where.self, *tensors))

    def _place(self, around: tuple[str, ...]) -> int:
        return self._around.setdefault(around, len(self._around) + 1)


def joined_parts(texts: Sequence[Argument]) -> tuple[Argument, ...] | None:
    """What a string is made of, one after the other; None where that is not known."""
    parts: list[Argument] = []
    for text in texts:
        if isinstance(text, UnknownText) and text.parts is not None:
            parts += text.parts
        elif isinstance(text, str) or (type(text) is int):
            parts.append(str(text))
        elif is_number(text) and number_dtype(text) == torch.int64:
            parts.append(text)
        else:
            return None
    return tuple(parts)


def formatted_parts(template: str, arguments: Sequence[Argument]) -> tuple[Argument, ...] | None:
    """Of `template.format(...)`, or `template % ...`, where nothing but `{}`, or `%s` and `%d`,
    stands for the arguments."""
    pieces = _HOLES.split(template)
    if len(pieces) != len(arguments) + 1 or any(c in p for p in pieces for c in "{}%"):
        return None
    texts = [pieces[0]]
    for argument, piece in zip(arguments, pieces[1:], strict=True):
        texts += [argument, piece]
    return joined_parts(texts)
