"""Where a model goes: checked before the work starts, and whole under its final name or absent."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import io
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from typing import BinaryIO, TypeAlias

from sardonyx.errors import InvalidOptionError, SerializeError

Destination: TypeAlias = str | os.PathLike[str] | BinaryIO

_FILE_WRITE_LIMIT = 2**30
_STREAM_WRITE_LIMIT = 2**20
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class Sink:
    """Passes bytes on to an open file or stream, and counts them."""

    def __init__(self, file: BinaryIO | io.FileIO, label: str) -> None:
        self._file = file
        self._label = label
        self.written = 0

    def reserve(self, size: int) -> None:
        """Allocates `size` bytes on disk: writing is faster, and a full disk is reported before
        anything is written."""
        with file_errors(self._label):
            _allocate(self._file.fileno(), size)

    def write(self, data: bytes | memoryview) -> int:
        rest = memoryview(data)
        total = len(rest)
        while rest:
            rest = rest[self._write_some(rest) :]
        return total

    def _write_some(self, data: memoryview) -> int:
        # A stream that is no io class may keep what it gets, or know only bytes: it gets a copy.
        known = isinstance(self._file, io.IOBase)
        part = data[: _FILE_WRITE_LIMIT if known else _STREAM_WRITE_LIMIT]
        try:
            taken = self._file.write(part if known else bytes(part))
        except Exception as error:
            raise SerializeError(
                f"cannot write {self._label}: {_reason(error)} (after {self.written} bytes)"
            ) from error
        if taken is None and not isinstance(self._file, io.RawIOBase):
            taken = len(part)
        if not taken:
            raise SerializeError(
                f"cannot write {self._label}: it takes no more bytes (after {self.written} bytes)"
            )
        self.written += taken
        return taken


def check_destination(destination: Destination) -> None:
    """Refuses, before any work is done, what could not be written in the end."""
    if isinstance(destination, str | os.PathLike):
        _check_path(path_of(destination))
    elif not callable(getattr(destination, "write", None)):
        raise InvalidOptionError(
            "f must be a path or a writable binary file, "
            f"not an object of type {type(destination).__name__}"
        )
    else:
        _check_stream(destination)


def path_of(destination: str | os.PathLike[str]) -> str:
    """The path to write to. A link is followed, as `open` would."""
    path = os.fspath(destination)
    if "\0" in path:
        raise InvalidOptionError(f"f has a null character, which no path may have: {path!r}")
    return os.path.realpath(path) if os.path.islink(path) else path


def is_device(path: str) -> bool:
    """A pipe or a device (`/dev/stdout`): written into, never replaced."""
    return os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode)


@contextlib.contextmanager
def open_device(path: str) -> Iterator[Sink]:
    with file_errors(path), open(path, "wb", buffering=0) as file:
        yield Sink(file, path)


@contextlib.contextmanager
def staged_files(*paths: str) -> Iterator[list[Sink]]:
    """Files under temporary names beside `paths`, renamed together when the block ends well.

    On any exception, an interrupt included, the temporaries are removed and `paths` are as before.
    """
    temporaries = [_name_beside(path) for path in paths]
    with contextlib.ExitStack() as cleanup:
        for temporary in temporaries:
            cleanup.callback(_remove, temporary)
        with contextlib.ExitStack() as opened:
            sinks: list[Sink] = []
            for path, temporary in zip(paths, temporaries, strict=True):
                with file_errors(path):
                    file = opened.enter_context(open(temporary, "xb", buffering=0))
                    if os.path.exists(path):
                        shutil.copymode(path, temporary)
                sinks.append(Sink(file, path))
            yield sinks
        with file_errors(paths[-1]):
            _rename_together(temporaries, paths)


@contextlib.contextmanager
def file_errors(path: str) -> Iterator[None]:
    try:
        yield
    except SerializeError:
        raise
    except OSError as error:
        raise SerializeError(f"cannot write {path}: {_reason(error)}") from error


def _check_path(path: str) -> None:
    if not path:
        raise InvalidOptionError("f is an empty path: give the name of a file")
    folder, name = os.path.split(path)
    folder = folder or os.curdir
    if not os.path.exists(folder):
        raise SerializeError(f"cannot write {path}: there is no folder {folder}")
    if not os.path.isdir(folder):
        raise SerializeError(f"cannot write {path}: {folder} is not a folder")
    if not name or os.path.isdir(path):
        raise SerializeError(f"cannot write {path}: it is a folder, not a file")
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise SerializeError(f"cannot write {path}: the file is read-only")
    if not is_device(path) and not os.access(folder, os.W_OK | os.X_OK):
        raise SerializeError(f"cannot write {path}: the folder {folder} is read-only")


def _check_stream(stream: object) -> None:
    label = stream_label(stream)
    if getattr(stream, "closed", False) is True:
        raise SerializeError(f"cannot write {label}: it is closed")
    if isinstance(stream, io.TextIOBase):
        raise SerializeError(f"cannot write {label}: it is open as text; open it with mode 'wb'")
    if isinstance(stream, io.IOBase) and not stream.writable():
        raise SerializeError(f"cannot write {label}: it is open for reading only")


def stream_label(stream: object) -> str:
    name = getattr(stream, "name", None)
    return name if isinstance(name, str) else f"the {type(stream).__name__} given as f"


def _allocate(descriptor: int, size: int) -> None:
    # Not os.posix_fallocate: where a file system has no such call, that writes into every block.
    fallocate = getattr(_LIBC, "fallocate", None)
    if fallocate is None or size == 0:
        return
    offset_type = ctypes.c_int64
    failed = fallocate(ctypes.c_int(descriptor), ctypes.c_int(0), offset_type(0), offset_type(size))
    if failed and ctypes.get_errno() in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _name_beside(path: str) -> str:
    return os.path.join(os.path.dirname(path), f".sardonyx-{secrets.token_hex(8)}.tmp")


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


def _rename_together(temporaries: list[str], paths: tuple[str, ...]) -> None:
    """All renames or none: what was there before is put back when one of them fails."""
    with contextlib.ExitStack() as cleanup, contextlib.ExitStack() as undo:
        # The last file needs no way back: nothing that can fail comes after it.
        for temporary, path in zip(temporaries[:-1], paths[:-1], strict=True):
            if os.path.exists(path):
                kept = _name_beside(path)
                cleanup.callback(_remove, kept)
                undo.callback(_put_back, kept, path)
                os.replace(path, kept)
            else:
                undo.callback(_remove, path)
            os.replace(temporary, path)
        os.replace(temporaries[-1], paths[-1])
        undo.pop_all()


def _put_back(kept: str, path: str) -> None:
    if os.path.exists(kept):
        os.replace(kept, path)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
