"""What a file says of itself, and that it does not say where it was made."""

from __future__ import annotations

import io
import os

import onnx
import pytest
import torch

from sardonyx.serialize.metadata import short_source, source_folders, stamp_metadata
from sardonyx.serialize.writer import write_model
from tests.serialize.models import linear


def stamped(source: str):
    model = linear(torch.ones(4, 3), torch.zeros(4))
    model.graph.node(0).metadata_props["sardonyx.source"] = source
    model.graph.outputs[0].metadata_props["sardonyx.source"] = source
    stamp_metadata(model)
    return model


def test_producer():
    model = stamped("a.py:1")
    assert model.producer_name == "sardonyx"
    assert model.producer_version


@pytest.mark.parametrize(
    ("location", "short"),
    [
        ("my_model.py:57", "my_model.py:57"),
        ("pkg/my_model.py", "pkg/my_model.py"),
        ("/no/such/place/my_model.py:57", "my_model.py:57"),
        (os.path.abspath(torch.nn.functional.__file__) + ":12", "torch/nn/functional.py:12"),
        ("<string>:3", "<string>:3"),
    ],
)
def test_short_source(location, short):
    assert short_source(location, source_folders()) == short


def test_source_below_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert short_source(f"{tmp_path}/nets/model.py:3", source_folders()) == "nets/model.py:3"
    monkeypatch.chdir("/")
    assert short_source("/no_such_place/nets/model.py:3", source_folders()) == "model.py:3"


def test_no_absolute_path_reaches_the_file(tmp_path):
    stream = io.BytesIO()
    write_model(stamped(f"{tmp_path}/my_model.py:57"), stream)
    assert str(tmp_path).encode() not in stream.getvalue()
    [node] = onnx.load_from_string(stream.getvalue()).graph.node
    props = {entry.key: entry.value for entry in node.metadata_props}
    assert props["sardonyx.source"] == "my_model.py:57"
    assert props["sardonyx.module"] == "fc"
