"""What the grammar "python" leaves out is what docs/lark.md says, and no more of the corpus."""

from __future__ import annotations

import pytest

from benchmarks.judges import JUDGES
from benchmarks.python_bounds import outside
from tests.grammars.shipped import corpus, takes

BEYOND = {
    "case as a name": "case = 1\n",
    "a word without a blank": "x = y if(z)else(w)\n",
    "names": "é = 1\n",
    "\\N{...}": 'x = "\\N{DIGIT ONE}"\n',
    "walrus in displays and slices": "x = [y := 1, 2]\n",
    "dots of an import": "from . .a import b\n",
    "what stands behind a number": "x = 1.0.real\n",
    "complex numbers in patterns": "match x:\n    case 1 + 2j: pass\n",
    "subject of match": "match -x:\n    case 1: pass\n",
    "del of brackets": "del (a, b)\n",
    "an annotated name in brackets": "(x): int = 1\n",
    "operators before as or from": "with a + b as c: pass\n",
    "a backslash before a brace": 'x = rf"\\{y}"\n',
    "holes of f-strings": "x = f\"{y['a']:=10}\"\n",
    "newer than Python 3.10": "x = y[*z]\n",
}


@pytest.mark.parametrize(("bound", "text"), BEYOND.items())
def test_beyond(bound: str, text: str) -> None:
    """The grammar leaves out what is beyond a bound, and the bound is told by Python's own means."""
    assert outside(text) == {bound}
    assert not takes("python", text)


def test_layout() -> None:
    """Ten levels of four spaces are within the bounds; more, other widths and tabs are not."""
    blocks = "".join(f"{'    ' * level}if x:\n" for level in range(10))
    assert not outside(f"{blocks}{' ' * 40}y\n")
    assert outside(f"{blocks}{' ' * 40}if x:\n{' ' * 44}y\n") == {"depth"}
    assert outside("if x:\n  y\n") == {"width of indentation"}
    assert outside("if x:\n\ty\n") == {"tabs"}
    assert outside("x\n" + "#\n" * 161 + "y\n") == {"lines between statements"}


@pytest.mark.parametrize("text", [text for name, text in corpus("accepted") if name == "python"])
def test_within(text: str) -> None:
    """No text of the corpus that the grammar takes is beyond a bound."""
    assert JUDGES["python"](text) is None
    assert not outside(text) - {"width of indentation"}
