"""Parity tests need the reference packages of `make parity`; without them they are not collected."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("dflash") is None or find_spec("speculators") is None:
    collect_ignore_glob = ["test_*.py"]
