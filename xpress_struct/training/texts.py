"""Texts that others wrote, as documents: cheaper by far than responses of the target, and next to them.

The target reads such a text once and shows what it would say at each place. A drafter learns the language
from that, and how the target itself writes from its own responses. EAGLE (arXiv 2401.15077) trains on given
texts alone.
"""

from __future__ import annotations

import ast
import random
import sysconfig
import textwrap
from collections.abc import Iterator
from pathlib import Path

from xpress_struct.errors import ArgumentError
from xpress_struct.model import Model
from xpress_struct.prompt import encode_prompt
from xpress_struct.training.shards import Document
from xpress_struct.training.split import group_of

__all__ = ["code_documents"]

_NO_EXAMPLES = {"test", "tests", "idlelib", "lib2to3", "site-packages", "dist-packages", "turtledemo"}
_LONGEST, _SHORTEST = 480, 40  # tokens of a document
_LARGE = 480  # characters of a class whose methods come one by one


def code_documents(model: Model, source: str | Path, count: int) -> list[Document]:
    """Functions and classes of Python files, several to a document, asked for by their module's docstring.

    Args:
        source: a folder, or "stdlib": the library of the Python that runs.
        count: most documents; the same ones for the same files.

    Raises:
        ArgumentError: the folder holds no Python code that can be read.
    """
    folder = Path(sysconfig.get_paths()["stdlib"]) if str(source) == "stdlib" else Path(source)
    files = sorted(
        path
        for path in folder.rglob("*.py")
        if not _NO_EXAMPLES & set(path.relative_to(folder).parts) and not path.name.startswith("test_")
    )
    random.Random(0).shuffle(files)
    documents: list[Document] = []
    for path in files:
        for document in _documents(model, path, str(path.relative_to(folder))):
            documents.append(document)
            if len(documents) == count:
                return documents
    if not documents:
        raise ArgumentError(f"--code {str(source)!r} holds no Python functions: name a folder, or 'stdlib'.")
    return documents


def _documents(model: Model, path: Path, name: str) -> Iterator[Document]:
    try:
        source = path.read_text(encoding="utf-8")
        module = ast.parse(source)
    except (OSError, SyntaxError, ValueError):
        return
    about = (ast.get_docstring(module) or path.stem.strip("_")).splitlines()[0][:200]
    prompt = tuple(encode_prompt(f"Write Python code: {about}", model.tokenizer))
    for number, response in enumerate(_packed(model, _pieces(source, module))):
        key, free = f"code {name} {number}", (False,) * len(response)
        yield Document(key, "code", group_of(name), False, None, 1.0, prompt, response, free)


def _pieces(source: str, module: ast.Module) -> Iterator[str]:
    """Functions and small classes, and the methods of large ones."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    queue = [node for node in module.body if isinstance(node, kinds)]
    while queue:
        node = queue.pop(0)
        text = textwrap.dedent(ast.get_source_segment(source, node, padded=True) or "")
        if isinstance(node, ast.ClassDef) and len(text) > _LARGE:
            queue = [each for each in node.body if isinstance(each, kinds)] + queue
        elif text:
            yield text


def _packed(model: Model, pieces: Iterator[str]) -> Iterator[tuple[int, ...]]:
    """Pieces joined while they fit into a document; a piece that is too long alone is cut."""
    held: list[int] = []
    for piece in pieces:
        ids = model.vocabulary.encode(f"{piece.rstrip()}\n\n\n")
        if held and len(held) + len(ids) > _LONGEST:
            yield tuple(held)
            held = []
        held = (held + list(ids))[:_LONGEST]
    if len(held) >= _SHORTEST:
        yield tuple(held)
