"""The systems by name; peers are imported when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from xpress_struct.errors import ArgumentError
from xpress_struct.lab.bench.meter import told
from xpress_struct.lab.bench.systems.ours import OURS, Ours
from xpress_struct.lab.bench.systems.plain import Setting

__all__ = ["DISTRIBUTIONS", "PEERS", "chosen", "failed", "label_of", "make_system"]

_HERE = "xpress_struct.lab.bench.systems"
PEERS = {
    "plain": ("plain", "Plain", "transformers, plain"),
    "llguidance": ("masked", "LLGuidance", "transformers, llguidance masks"),
    "xgrammar": ("masked", "XGrammar", "transformers, xgrammar masks"),
    "outlines": ("by_outlines", "Outlines", "transformers, Outlines masks"),
    "plain-lookup": ("plain", "PromptLookup", "transformers, prompt lookup"),
    "dflash": ("by_dflash", "DFlash", "dflash loop, our drafter"),
    "llama-cpp": ("by_llama_cpp", "LlamaCpp", "llama.cpp, its grammar"),
}
"""Name -> module, class, label."""
DISTRIBUTIONS = ("xgrammar", "outlines", "outlines-core", "dflash", "llama-cpp-python")
_INSTALL = {
    "xgrammar": 'pip install "xpress-struct[bench]"',
    "outlines": 'pip install "xpress-struct[bench]"',
    "dflash": "pip install --no-deps dflash==0.1.0",
    "llama_cpp": "pip install llama-cpp-python",
}


def label_of(name: str) -> str:
    """The system in words."""
    return OURS[name] if name in OURS else PEERS[name][2]


def make_system(name: str, setting: Setting) -> Any:
    """One system.

    Raises:
        ModuleNotFoundError: its package is not installed; the message says how to get it.
        Exception: whatever a peer raises.
    """
    if name in OURS:
        return Ours.named(name, setting)
    module, kind, _ = PEERS[name]
    try:
        return getattr(import_module(f"{_HERE}.{module}"), kind)(setting)
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        how = f"; {_INSTALL[package]}" if package in _INSTALL else ""
        raise ModuleNotFoundError(f"{package} is not installed{how}", name=error.name) from None


def failed(error: Exception) -> str:
    """Why a system cannot run, in one line."""
    return f"not installed: {error}" if isinstance(error, ModuleNotFoundError) else told(error)


def chosen(peers: str, ours: str) -> list[str]:
    """Names of systems from two lists, separated by commas: "all", "none", or names.

    They come in the order of the lists of all: the first one, "plain" where it runs, is what others are
    compared with.

    Raises:
        ArgumentError: a name is not known.
    """
    names = _some(peers, list(PEERS), "--peers") + _some(ours, list(OURS), "--ours")
    if not names:
        raise ArgumentError("No system is left to run.")
    return names


def _some(asked: str, known: Iterable[str], option: str) -> list[str]:
    known = list(known)
    if asked in ("all", "none"):
        return known if asked == "all" else []
    names = [name if name in known else f"ours-{name}" for name in asked.split(",")]
    unknown = [name.removeprefix("ours-") for name in names if name not in known]
    if unknown:
        raise ArgumentError(f"{option}: unknown {', '.join(unknown)}; known: {', '.join(known)}.")
    return [name for name in known if name in names]
