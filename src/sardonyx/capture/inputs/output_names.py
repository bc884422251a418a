"""What the outputs of the file are called."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.errors import InvalidOptionError


def name_outputs(
    paths: Sequence[tuple[str, ...]], given: Sequence[str], taken: Sequence[str]
) -> list[str]:
    """The caller's names, then names after the place in the result: keys stay as they are."""
    if len(given) > len(paths):
        raise InvalidOptionError(
            f"output_names has {len(given)} names for {len(paths)} outputs: {', '.join(given)}"
        )
    names = list(given)
    for name in names:
        if not name:
            raise InvalidOptionError("an output name is empty")
        if names.count(name) > 1:
            raise InvalidOptionError(f"output_names has {name!r} twice")
        if name in taken:
            raise InvalidOptionError(
                f"output name {name!r} is also the name of an input or parameter"
            )
    for path in paths[len(names) :]:
        name = default_output_name(path)
        while name in taken or name in names:
            name += "_out"
        names.append(name)
    return names


def default_output_name(path: tuple[str, ...]) -> str:
    if not path:
        return "output"
    head = f"output_{path[0]}" if path[0].isdecimal() else path[0]
    return ".".join((head, *path[1:]))
