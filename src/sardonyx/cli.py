"""The command line: `sardonyx export`, `sardonyx show`, `sardonyx ops`, `sardonyx run`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn

import torch
import typer
from rich.console import Console

from sardonyx import cli_arguments as arguments
from sardonyx.api import export
from sardonyx.errors import (
    InvalidOptionError,
    NotRunnableError,
    SardonyxError,
    VerificationError,
)
from sardonyx.extend.operator_sources import operators
from sardonyx.options import CAPTURES, DEFAULT_OPSET
from sardonyx.program import ONNXProgram
from sardonyx.report.summary import summary_dict, summary_table
from sardonyx.serialize.metadata import producer_version
from sardonyx.serialize.text import to_text_from_file

EXPORT_FAILED = 1
BAD_USAGE = 2
VERIFICATION_FAILED = 3
NOT_RUNNABLE = 4

STAGES = ("capture", "lower", "legalize", "optimize", "serialize", "verify")

app = typer.Typer(
    name="sardonyx",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """The `sardonyx` command."""
    app()


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"sardonyx {producer_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Exports PyTorch models to ONNX, and checks that the result computes the same."""


@app.command("export")
def export_command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="MODULE:CALLABLE or FILE.py:CALLABLE that makes the model; "
            "or a .pt2 file, or a TorchScript .pt file.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write; by default named after the model."),
    ] = None,
    input_texts: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="[NAME=]DIMS[:DTYPE][:LOW..HIGH]",
            help="An example input, as 1x3x224x224:float32 or ids=1x16:int64:0..1000;"
            " DIMS is scalar for a tensor without dims. Repeatable.",
        ),
    ] = None,
    inputs_function: Annotated[
        str | None,
        typer.Option(
            "--inputs", metavar="FILE.py:FUNC", help="A function that returns the example inputs."
        ),
    ] = None,
    dynamic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="INPUT:AXIS=NAME", help="A dynamic dimension, as x:0=batch. Repeatable."
        ),
    ] = None,
    opset: Annotated[
        int, typer.Option(help="The ONNX opset of the file, 7 or newer.")
    ] = DEFAULT_OPSET,
    capture: Annotated[
        str, typer.Option(help=f"How to record the model: {', '.join(CAPTURES)}.")
    ] = "auto",
    external_data: Annotated[
        bool | None,
        typer.Option(
            "--external-data/--no-external-data",
            help="Weights in a file of their own; by default only where one file is too small.",
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify/--no-verify", help="Compare ONNX Runtime with PyTorch before writing."
        ),
    ] = True,
    rtol: Annotated[
        float | None, typer.Option(help="The relative error that --verify accepts.")
    ] = None,
    atol: Annotated[
        float | None, typer.Option(help="The absolute error that --verify accepts.")
    ] = None,
    state_outputs: Annotated[
        bool,
        typer.Option(
            "--state-outputs/--no-state-outputs",
            help="Return inputs and buffers that the model writes as extra outputs.",
        ),
    ] = False,
    export_modules_as_functions: Annotated[
        bool,
        typer.Option(
            "--export-modules-as-functions",
            help="Make a function of the file of every class of modules.",
        ),
    ] = False,
    optimize: Annotated[
        bool, typer.Option("--optimize/--no-optimize", help="Run the optimization passes.")
    ] = True,
    input_names: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Names for the inputs.")
    ] = None,
    output_names: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Names for the outputs.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON, and nothing else.")
    ] = False,
) -> None:
    """Export a model.

    Exit status: 0 exported; 1 export failed; 2 bad usage; 3 ONNX Runtime and PyTorch disagree;
    4 ONNX Runtime cannot run the model.
    """
    with _exit_status(as_json):
        if capture not in CAPTURES:
            raise arguments.UsageError(f"--capture is one of {', '.join(CAPTURES)}")
        axes = arguments.dynamic_axes(dynamic or [])
        model = arguments.load_model(target)
        args, kwargs = _example_inputs(model, input_texts or [], inputs_function)
        path = output or _default_output(target)
        with _progress(quiet=as_json) as progress:
            program = export(
                model,
                args,
                path,
                kwargs=kwargs,
                input_names=arguments.input_names(input_names, args, kwargs),
                output_names=arguments.names(output_names),
                opset_version=opset,
                dynamic_axes=axes,
                capture=capture,
                external_data=external_data,
                optimize=optimize,
                verify=verify,
                rtol=rtol,
                atol=atol,
                state_outputs=state_outputs,
                export_modules_as_functions=export_modules_as_functions,
                progress=progress,
            )
    _print_summary(program, as_json)


@app.command("show")
def show_command(
    path: Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="The file to print.")],
) -> None:
    """Print a model as text."""
    with _exit_status(as_json=False):
        if not path.is_file():
            raise arguments.UsageError(f"there is no file {path}")
        typer.echo(to_text_from_file(path))


@app.command("run", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run_command(
    context: typer.Context,
    script: Annotated[
        Path, typer.Argument(metavar="SCRIPT.py", help="A program that calls torch's exporter.")
    ],
) -> None:
    """Run a script with Sardonyx behind PyTorch's exporter; its arguments follow its name."""
    with _exit_status(as_json=False):
        if not script.is_file():
            raise arguments.UsageError(f"there is no file {script}")
        arguments.run_script(script, context.args)


@app.command("ops")
def ops_command(
    text: Annotated[
        str, typer.Argument(metavar="[TEXT]", help="Only operators whose names have this text.")
    ] = "",
    source: Annotated[
        bool, typer.Option("--source", help="Say which module the form of each comes from.")
    ] = False,
) -> None:
    """List the operators that have an ONNX form of their own."""
    known, failed = operators()
    listed = [each for each in known if text in each.name]
    width = max((len(each.name) for each in listed), default=0)
    for each in listed:
        typer.echo(f"{each.name:<{width}}  {each.source}" if source else each.name)
    for reason in failed.values():
        typer.echo(reason, err=True)


def _example_inputs(
    model: Any, texts: list[str], function: str | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if texts and function:
        raise arguments.UsageError("--input and --inputs exclude each other")
    if function:
        return arguments.inputs_from(function)
    if texts:
        return arguments.drawn_inputs(texts)
    if isinstance(model, torch.export.ExportedProgram):
        if model.example_inputs is None:
            raise arguments.UsageError("the .pt2 file holds no example inputs: give --input")
        args, kwargs = model.example_inputs
        return args, kwargs
    if missing := arguments.required_inputs(model):
        raise arguments.UsageError(
            f"the model takes {', '.join(missing)}: give an --input for each, or --inputs"
        )
    return (), {}


def _default_output(target: str) -> Path:
    name = target.rpartition(":")[2]
    return Path(f"{Path(name).stem}.onnx")


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


def _print_summary(program: ONNXProgram, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"ok": True, **summary_dict(program)}, indent=2))
    else:
        Console().print(summary_table(program))


@contextlib.contextmanager
def _exit_status(as_json: bool) -> Iterator[None]:
    try:
        yield
    except arguments.UsageError as error:
        _fail(error, BAD_USAGE, as_json)
    except InvalidOptionError as error:
        _fail(error, BAD_USAGE, as_json)
    except NotRunnableError as error:
        _fail(error, NOT_RUNNABLE, as_json)
    except VerificationError as error:
        _fail(error, VERIFICATION_FAILED, as_json)
    except SardonyxError as error:
        _fail(error, EXPORT_FAILED, as_json)


def _fail(error: Exception, status: int, as_json: bool) -> NoReturn:
    kind = type(error).__name__
    if as_json:
        report = {"ok": False, "error": kind, "message": str(error)}
        typer.echo(json.dumps(report, indent=2))
    else:
        typer.echo(f"{kind}: {error}", err=True)
    raise typer.Exit(status)
