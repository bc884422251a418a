"""A path holds the whole model or what it held before; nothing is left behind."""

from __future__ import annotations

import ctypes
import errno
import io
import os
import resource
import stat
import sys

import pytest
import torch

from sardonyx.errors import InvalidOptionError, SerializeError
from sardonyx.lower.weights import TorchTensor
from sardonyx.options import ExternalData
from sardonyx.serialize import destination as destination_module
from sardonyx.serialize.destination import check_destination
from sardonyx.serialize.writer import write_model
from tests.serialize.models import linear, weights_only

EXTERNAL = ExternalData(0)


def a_model():
    return linear(torch.ones(4, 3), torch.zeros(4))


def files(folder) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in os.listdir(folder)}


def test_refused_before_the_work_starts(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    cases = {
        tmp_path / "missing" / "m.onnx": "there is no folder",
        tmp_path / "file" / "m.onnx": "is not a folder",
        tmp_path / "folder": "it is a folder",
    }
    for path, reason in cases.items():
        with pytest.raises(SerializeError, match=reason):
            check_destination(path)
    with pytest.raises(InvalidOptionError, match="empty path"):
        check_destination("")
    monkeypatch.setattr(os, "access", lambda path, mode: path != str(tmp_path))
    with pytest.raises(SerializeError, match="is read-only"):
        check_destination(tmp_path / "m.onnx")
    monkeypatch.setattr(os, "access", lambda path, mode: path != str(tmp_path / "file"))
    with pytest.raises(SerializeError, match="the file is read-only"):
        check_destination(tmp_path / "file")


def test_streams_that_cannot_take_a_model(tmp_path):
    closed = io.BytesIO()
    closed.close()
    (tmp_path / "f").write_bytes(b"")
    with open(tmp_path / "f", "rb") as reading, open(tmp_path / "f") as text:
        for stream, reason in [(closed, "closed"), (reading, "reading"), (text, "mode 'wb'")]:
            with pytest.raises(SerializeError, match=reason):
                check_destination(stream)
    with pytest.raises(InvalidOptionError, match=r"path or a writable binary file, not .* int"):
        check_destination(3)


def test_good_destinations_pass(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for destination in ("m.onnx", tmp_path / "m.onnx", io.BytesIO(), "/dev/null"):
        check_destination(destination)
    assert os.listdir(tmp_path) == []


def fail_after(count: int, error: BaseException):
    """A TorchTensor.tofile that fails at the given call, halfway through the tensor."""
    calls = 0
    original = TorchTensor.tofile

    def tofile(self, file):
        nonlocal calls
        calls += 1
        if calls <= count:
            return original(self, file)
        file.write(bytes(5))
        raise error

    return tofile


@pytest.mark.parametrize("external_data", [None, EXTERNAL])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("CUDA error")], ids=repr)
@pytest.mark.parametrize("before", [0, 1])
def test_interrupted_write_leaves_the_old_files(
    tmp_path, monkeypatch, external_data, error, before
):
    write_model(weights_only(old=torch.ones(3)), tmp_path / "m.onnx", external_data=EXTERNAL)
    old = files(tmp_path)
    assert sorted(old) == ["m.onnx", "m.onnx.data"]
    monkeypatch.setattr(TorchTensor, "tofile", fail_after(before, error))
    with pytest.raises(type(error)):
        write_model(a_model(), tmp_path / "m.onnx", external_data=external_data)
    assert files(tmp_path) == old


@pytest.mark.parametrize("external_data", [None, EXTERNAL])
def test_full_disk(tmp_path, monkeypatch, external_data):
    def full(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    real_open = open

    class Full(io.FileIO):
        write = full

    monkeypatch.setattr(
        destination_module,
        "open",
        lambda path, mode, buffering: Full(path, "x") if mode == "xb" else real_open(path, mode),
        raising=False,
    )
    with pytest.raises(SerializeError, match=r"m\.onnx.*No space left on device") as info:
        write_model(a_model(), tmp_path / "m.onnx", external_data=external_data)
    assert isinstance(info.value, OSError)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the space is reserved on Linux")
@pytest.mark.parametrize("external_data", [None, EXTERNAL])
def test_too_little_space_is_told_of_before_a_weight_is_read(tmp_path, monkeypatch, external_data):
    monkeypatch.setattr(TorchTensor, "tofile", fail_after(0, AssertionError("read")))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, limits[1]))
    try:
        with pytest.raises(SerializeError, match=r"m\.onnx.*File too large"):
            write_model(a_model(), tmp_path / "m.onnx", external_data=external_data)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(tmp_path) == []


def test_a_file_system_that_reserves_no_space(tmp_path, monkeypatch):
    class Libc:
        def fallocate(self, *_):
            ctypes.set_errno(errno.EOPNOTSUPP)
            return -1

    write_model(a_model(), tmp_path / "reserved.onnx")
    monkeypatch.setattr(destination_module, "_LIBC", Libc())
    write_model(a_model(), tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").read_bytes() == (tmp_path / "reserved.onnx").read_bytes()


@pytest.mark.parametrize(
    ("existing", "failing"), [(False, 1), (False, 2), (True, 1), (True, 2), (True, 3)]
)
def test_both_files_are_renamed_or_neither(tmp_path, monkeypatch, existing, failing):
    if existing:
        write_model(weights_only(old=torch.ones(3)), tmp_path / "m.onnx", external_data=EXTERNAL)
    old = files(tmp_path)
    real = os.replace
    calls = 0

    def replace(source, to):
        nonlocal calls
        calls += 1
        if calls == failing:
            raise PermissionError(errno.EACCES, "Permission denied")
        real(source, to)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(SerializeError, match="Permission denied"):
        write_model(a_model(), tmp_path / "m.onnx", external_data=EXTERNAL)
    assert calls >= failing
    assert files(tmp_path) == old


def test_overwriting_replaces_both_files_and_leaves_no_other(tmp_path):
    for value in (1.0, 2.0):
        model = weights_only(w=torch.full((4,), value))
        write_model(model, tmp_path / "m.onnx", external_data=EXTERNAL)
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "m.onnx.data"]
    assert (tmp_path / "m.onnx.data").read_bytes() == torch.full((4,), 2.0).numpy().tobytes()


def test_file_mode_is_that_of_any_new_file_or_of_the_old_one(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    write_model(a_model(), tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "m.onnx").chmod(0o640)
    write_model(a_model(), tmp_path / "m.onnx")
    assert stat.S_IMODE((tmp_path / "m.onnx").stat().st_mode) == 0o640


def test_a_link_is_followed_and_a_device_is_not_replaced(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "link.onnx").symlink_to(tmp_path / "store" / "real.onnx")
    write_model(a_model(), tmp_path / "link.onnx")
    assert (tmp_path / "link.onnx").is_symlink()
    assert os.listdir(tmp_path / "store") == ["real.onnx"]
    assert write_model(a_model(), "/dev/null").model_bytes > 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(SerializeError, match="needs a path"):
        write_model(a_model(), "/dev/null", external_data=True)


def test_a_relative_path_is_written_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = write_model(a_model(), "m.onnx", external_data=EXTERNAL)
    assert (result.path, result.data_path) == ("m.onnx", "m.onnx.data")
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "m.onnx.data"]


def test_a_stream_that_fails_midway():
    class Broken:
        taken = 0

        def write(self, data):
            self.taken += len(data)
            if self.taken > 100:
                raise ConnectionError("connection reset")

    with pytest.raises(SerializeError, match=r"the Broken given as f: connection reset \(after"):
        write_model(a_model(), Broken())


def test_partial_writes_are_continued_and_a_stuck_stream_is_an_error():
    class OneByte(io.RawIOBase):
        content = b""
        room = 10**9

        def writable(self):
            return True

        def write(self, data):
            part = bytes(data[: min(1, self.room)])
            self.content += part
            self.room -= len(part)
            return len(part)

    whole, slow, stuck = io.BytesIO(), OneByte(), OneByte()
    write_model(a_model(), whole)
    write_model(a_model(), slow)
    assert slow.content == whole.getvalue()
    stuck.room = 7
    with pytest.raises(SerializeError, match=r"takes no more bytes \(after 7 bytes\)"):
        write_model(a_model(), stuck)


def test_missing_weights_are_listed_before_a_byte_is_written(tmp_path):
    model = linear(torch.empty(4, 3, device="meta"), torch.empty(4, device="meta"))
    stream = io.BytesIO()
    for target in (stream, tmp_path / "m.onnx"):
        with pytest.raises(SerializeError, match=r"missing of 2 parameters") as info:
            write_model(model, target)
        assert "fc.weight" in str(info.value) and "export_params=False" in str(info.value)
    assert stream.getvalue() == b"" and os.listdir(tmp_path) == []
