"""What the commands of `sardonyx` do."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import torch
import typer
from rich.console import Console

from sardonyx.api import export
from sardonyx.cli import parsing
from sardonyx.cli.messages import as_options
from sardonyx.errors import (
    InvalidOptionError,
    NotRunnableError,
    SardonyxError,
    VerificationError,
)
from sardonyx.extend.operator_sources import operators
from sardonyx.options import CAPTURES
from sardonyx.report.summary import summary_dict, summary_table
from sardonyx.serialize.text import to_text_from_file

EXPORT_FAILED = 1
BAD_USAGE = 2
VERIFICATION_FAILED = 3
NOT_RUNNABLE = 4

_STATUS: dict[type[SardonyxError], int] = {
    InvalidOptionError: BAD_USAGE,
    NotRunnableError: NOT_RUNNABLE,
    VerificationError: VERIFICATION_FAILED,
    SardonyxError: EXPORT_FAILED,
}
STAGES = ("capture", "lower", "legalize", "optimize", "serialize", "verify")


def export_model(
    source: str,
    output: Path | None,
    input_texts: list[str] | None,
    inputs_function: str | None,
    *,
    dynamic: list[str] | None,
    input_names: str | None,
    output_names: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """`sardonyx export`; `options` are those of `export`."""
    with _exit_status(as_json, as_options):
        if options["capture"] not in CAPTURES:
            raise parsing.UsageError(f"--capture is one of {', '.join(CAPTURES)}")
        axes = parsing.dynamic_axes(dynamic or ())
        model = parsing.load_model(source)
        args, kwargs = _example_inputs(model, input_texts, inputs_function)
        name = source.rpartition(":")[2]
        path = output or Path(f"{Path(name).stem}.onnx")
        with _progress(quiet=as_json) as progress:
            program = export(
                model,
                args,
                path,
                kwargs=kwargs,
                input_names=parsing.input_names(input_names, args, kwargs),
                output_names=parsing.names(output_names),
                dynamic_axes=axes,
                progress=progress,
                **options,
            )
    if as_json:
        typer.echo(json.dumps({"ok": True, **summary_dict(program)}, indent=2))
    else:
        Console().print(summary_table(program))


def show_file(path: Path) -> None:
    with _exit_status(as_json=False):
        if not path.is_file():
            raise parsing.UsageError(f"there is no file {path}")
        typer.echo(to_text_from_file(path))


def run_script(script: Path, argv: list[str]) -> None:
    with _exit_status(as_json=False):
        if not script.is_file():
            raise parsing.UsageError(f"there is no file {script}")
        parsing.run_script(script, argv)


def list_operators(text: str, *, with_source: bool) -> None:
    known, failed = operators()
    listed = [each for each in known if text in each.name]
    width = max((len(each.name) for each in listed), default=0)
    for each in listed:
        typer.echo(f"{each.name:<{width}}  {each.source}" if with_source else each.name)
    for reason in failed.values():
        typer.echo(reason, err=True)


def _example_inputs(
    model: Any, texts: list[str] | None, function: str | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if texts and function:
        raise parsing.UsageError("--input and --inputs exclude each other")
    if function:
        return parsing.inputs_from(function)
    if texts:
        return parsing.drawn_inputs(texts)
    if isinstance(model, torch.export.ExportedProgram):
        if model.example_inputs is None:
            raise parsing.UsageError("the .pt2 file holds no example inputs: give --input")
        args, kwargs = model.example_inputs
        return args, kwargs
    if missing := parsing.required_inputs(model):
        raise parsing.UsageError(
            f"the model takes {', '.join(missing)}: give an --input for each, or --inputs"
        )
    return (), {}


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str], None] | None]:
    """A callback that shows the stage at work, on the error stream."""
    if quiet:
        yield None
        return
    console = Console(stderr=True)

    def text(stage: str) -> str:
        number = f"{STAGES.index(stage) + 1}/{len(STAGES)} " if stage in STAGES else ""
        return f"{number}{stage}"

    if not console.is_terminal:
        yield lambda stage: console.print(text(stage), highlight=False)
        return
    with console.status("sardonyx") as status:
        yield lambda stage: status.update(text(stage))


@contextlib.contextmanager
def _exit_status(as_json: bool, rephrase: Callable[[str], str] = str) -> Iterator[None]:
    """`rephrase` puts a message of the export into the words of the command."""
    try:
        yield
    except parsing.UsageError as error:
        _fail(error, BAD_USAGE, as_json, str(error))
    except SardonyxError as error:
        status = next(status for kind, status in _STATUS.items() if isinstance(error, kind))
        _fail(error, status, as_json, rephrase(str(error)))


def _fail(error: Exception, status: int, as_json: bool, message: str) -> NoReturn:
    name = type(error).__name__
    if as_json:
        typer.echo(json.dumps({"ok": False, "error": name, "message": message}, indent=2))
    else:
        typer.echo(f"{name}: {message}", err=True)
    raise typer.Exit(status)
