"""The files that compiled code depends on beside its own: what is in them, and whether that is what was imported.

They may be exchanged while a process runs, by an upgrade. What such a process compiles is of both, and must not get into a cache.
"""

from __future__ import annotations

import os

FOLDERS = ("engine", "kernels")


def _look() -> list[tuple[str, int, int]]:
    """By what a change is seen: names, times and sizes, or those of the archive that the sources are in."""
    archive, package = getattr(__spec__.loader, "archive", None), os.path.dirname(os.path.dirname(__file__))
    try:
        if archive:
            paths = [archive]
        else:
            paths = [file.path for folder in FOLDERS for file in os.scandir(os.path.join(package, folder)) if file.name.endswith(".py")]
        return [(path, status.st_mtime_ns, status.st_size) for path in sorted(paths) for status in [os.stat(path)]]
    except OSError:
        return []


_imported = _look()


def are_imported() -> bool:
    """Whether they are those that this process has imported."""
    return bool(_imported) and _look() == _imported


def content() -> bytes:
    """Of all of them; nothing where there are none."""
    from importlib import resources

    try:
        parts = [resources.files("fastops").joinpath(part) for part in FOLDERS]
        files = [file for part in parts for file in sorted(part.iterdir(), key=lambda file: file.name) if file.name.endswith(".py")]
        return b"".join(file.read_bytes() for file in files)
    except OSError:
        return b""
