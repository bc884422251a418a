"""The command line: `sardonyx export`, `sardonyx show`, `sardonyx ops`, `sardonyx run`.

What the commands are is said here, without PyTorch, for `--help` and `--version`; what they do is
in `commands.py`, which is imported when one runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sardonyx.options import CAPTURES, DEFAULT_OPSET, TARGETS
from sardonyx.version import producer_version

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


def _print_version(is_set: bool) -> None:
    if is_set:
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
    source: Annotated[
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
            metavar="INPUT:AXIS=NAME[[MIN..MAX]]",
            help="A dynamic dimension, as x:0=batch, or with its range, as x:0=batch[2..64]."
            " Repeatable.",
        ),
    ] = None,
    opset_version: Annotated[
        int, typer.Option("--opset", help="The ONNX opset of the file, 7 or newer.")
    ] = DEFAULT_OPSET,
    capture: Annotated[
        str, typer.Option(help=f"How to record the model: {', '.join(CAPTURES)}.")
    ] = "auto",
    target: Annotated[
        str, typer.Option(help=f"What the file is to run in: {', '.join(TARGETS)}.")
    ] = "onnxruntime",
    external_data: Annotated[
        bool | None,
        typer.Option(
            "--external-data/--no-external-data",
            help="Weights in a separate file; by default only where one file is too small.",
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
    given = locals()
    from sardonyx.cli import commands

    commands.export_model(**given)


@app.command("show")
def show_command(
    path: Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="The file to print.")],
) -> None:
    """Print a model as text."""
    from sardonyx.cli import commands

    commands.show_file(path)


@app.command(
    "run",
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,  # what follows the script is the script's
    },
)
def run_command(
    context: typer.Context,
    script: Annotated[
        Path, typer.Argument(metavar="SCRIPT.py", help="A program that calls torch's exporter.")
    ],
) -> None:
    """Run a script with Sardonyx behind PyTorch's exporter; its arguments follow its name."""
    from sardonyx.cli import commands

    commands.run_script(script, context.args)


@app.command("ops")
def ops_command(
    text: Annotated[
        str, typer.Argument(metavar="[TEXT]", help="Only operators whose names have this text.")
    ] = "",
    source: Annotated[
        bool, typer.Option("--source", help="Say which module the form of each comes from.")
    ] = False,
) -> None:
    """List the operators that have an ONNX form."""
    from sardonyx.cli import commands

    commands.list_operators(text, with_source=source)
