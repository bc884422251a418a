"""Export AlexNet with a dynamic batch, verify it against PyTorch, and print what came out.

Run by `make demo`, or: python examples/alexnet.py
"""

from pathlib import Path

from models import alexnet
from rich.console import Console

import sardonyx
from sardonyx.report.summary import summary_table

OUTPUT = Path(__file__).resolve().parents[1] / "build" / "alexnet.onnx"


def main() -> None:
    OUTPUT.parent.mkdir(exist_ok=True)
    program = sardonyx.export(
        alexnet.make(),
        alexnet.example_inputs(),
        OUTPUT,
        input_names=["image"],
        output_names=["logits"],
        dynamic_axes=alexnet.dynamic_batch(),
        verify=True,
    )
    Console().print(summary_table(program))


if __name__ == "__main__":
    main()
