"""Every statement of the reference's examples is run by a test below this folder, as it is
written there but for the package's name. test_examples_as_written.py runs the documents' own text.

The documents lie beside the repository, in ../shared/reference; without them there is nothing to
compare with, and the tests themselves still run.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REFERENCE = HERE.parents[2] / "shared" / "reference"

ADAPTED = {
    "import torchvision": "AlexNet is that of examples/",
    "dummy_input = torch.randn(10, 3, 224, 224, device='cuda')": "a GPU where there is one",
    "model = torchvision.models.alexnet(pretrained=True).cuda()": "the weights are a download",
    "import caffe2.python.onnx.backend as backend": "ONNX Runtime has the same interface",
    "rep = backend.prepare(model, device='CUDA:0')": "or 'CPU', the example says",
    "model = onnx.load('alexnet.onnx')": "the tests have the file in a folder of their own",
    "print(onnx.helper.printable_graph(model.graph))": "asserted on instead",
    "onnx.helper.printable_graph(model.graph)": "asserted on",
    "print(outputs[0])": "asserted on instead",
    "ort_session = ort.InferenceSession('alexnet.onnx')": "the file's folder",
    "outputs = ort_session.run(None, {'actual_input_1': np.random.randn(10, 3, 224, 224)"
    ".astype(np.float32)})": "compared with eager on the same images",
    "np.concatenate((x, y), axis=1)": "its result is used",
    "torch.cat((x, y), dim=1)": "its result is used",
    "data[torch.tensor([[1, 2], [2, -3]]), torch.tensor([-2, 3])]": "its result is returned",
    "opset_version = 15": "a parameter",
}
"""Statements that stand otherwise in the tests, and why."""

NO_EXAMPLES = re.compile(r"operator/symbolic|virtual Tensor|def elu\(input: Tensor")
"""The interfaces that the documents print as if they were code, and signatures of PyTorch's."""


def blocks(document: Path) -> Iterator[str]:
    """The indented blocks after `::`, also in a comment of the document, or the fenced ones."""
    text = document.read_text()
    if document.suffix == ".md":
        yield from re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        return
    for found in re.finditer(r"::\s*\n\n+((?:[ ]+.*\n|\n)+)", text):
        yield found[1]
    for found in re.finditer(r"^\.\. [^\n]*:\n\n((?:\.\. \.? {4}.*\n|\n)+)", text, re.MULTILINE):
        yield re.sub(r"^\.\. (\. )?", "", found[1], flags=re.MULTILINE)


def example_texts(document: Path) -> Iterator[str]:
    for block in blocks(document):
        if NO_EXAMPLES.search(block):
            continue
        text = textwrap.dedent(block).partition("################ result")[0]  # what it prints
        try:
            ast.parse(text)
        except SyntaxError:
            continue  # a printed graph, a shell command, the text of an error
        yield text


def examples(document: Path) -> Iterator[ast.Module]:
    for text in example_texts(document):
        yield ast.parse(text.replace("torch.onnx", "sardonyx"))


def simple_statements(tree: ast.AST) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield ast.parse(f"def {node.name}({ast.unparse(node.args)}): ...").body[0]
        elif isinstance(node, ast.ClassDef):
            yield ast.parse(
                f"class {node.name}({', '.join(map(ast.unparse, node.bases))}): ..."
            ).body[0]
        elif isinstance(node, ast.stmt) and not hasattr(node, "body"):
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not is_text:
                yield node


def without_call(statement: ast.stmt) -> tuple[str, ast.Call | None]:
    """A statement around a call, and the call."""
    call = getattr(statement, "value", None)
    if not isinstance(call, ast.Call):
        return "", None
    targets = getattr(statement, "targets", [])
    return f"{type(statement).__name__} {list(map(ast.unparse, targets))}", call


def is_told_more(written: ast.stmt, example: ast.stmt) -> bool:
    """Whether both are calls, of which the tests' is given further options."""
    (around, ours), (other_around, theirs) = without_call(written), without_call(example)
    if ours is None or theirs is None or around != other_around:
        return False
    first, other_first = ([ast.dump(n) for n in (c.func, *c.args)] for c in (ours, theirs))
    options, other_options = (set(map(ast.dump, c.keywords)) for c in (ours, theirs))
    return first == other_first and other_options <= options


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the reference's documents are not here")
@pytest.mark.parametrize(
    "document, count",
    {
        "torch-onnx-1.x.rst": 4,
        "torch-onnx-2.1.rst": 20,
        "adding-an-operator.md": 1,
        "custom-operators-zh.md": 5,
    }.items(),
)
def test_examples(document: str, count: int) -> None:
    written = [
        statement
        for file in sorted(HERE.rglob("*.py"))
        if file != Path(__file__)
        for statement in simple_statements(ast.parse(file.read_text()))
    ]
    known = {ast.unparse(statement) for statement in written}
    found = list(examples(REFERENCE / document))
    missing = [
        ast.unparse(statement)
        for example in found
        for statement in simple_statements(example)
        if (text := ast.unparse(statement)) not in known
        and text not in ADAPTED
        and not any(is_told_more(other, statement) for other in written)
    ]
    assert not missing, "\n".join(missing)
    assert len(found) == count, [ast.unparse(example) for example in found]
