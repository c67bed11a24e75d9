"""Code: a function to its end, a module, and files whose names must differ."""

from __future__ import annotations

import random
import string
from itertools import product

import numpy as np
import pytest

import xpress_struct as xs
from tests.stubs import prefers, stub_model
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import ArgumentError, OutputValidationError

HEAD = '@cached\ndef area(r: float, *, unit="m") -> str:\n    """Area of a circle."""\n'


@pytest.mark.slow
def test_the_rest_of_a_function() -> None:
    """Behind a prefix the text is the function's rest, and ends with it; the value is the whole."""
    made = xs.code("python", prefix="import math\n\n\n" + HEAD)
    body = "    if r < 0:  # no circle\n        raise ValueError('negative')\n    return r ** 2 * math.pi\n"
    assert made.accepts(body)
    assert made.parse(body).endswith(HEAD + body)
    assert not made.accepts(body + "print(1)\n")
    assert not made.accepts("return 1\n")
    assert not made.accepts("    return (\n")


@pytest.mark.slow
def test_a_model_writes_a_function() -> None:
    """A model that wants a body, and then more, is stopped behind the body."""
    body = "    return 2 * r\n"
    made = xs.code("python", prefix=HEAD)
    assert stub_model(prefers(body)).generate([1], made, max_new_tokens=60).value == HEAD + body


@pytest.mark.slow
def test_random_functions() -> None:
    """What a random model writes parses."""

    def logits(prefix: tuple[int, ...]) -> list[float]:
        draw = random.Random(str(prefix))
        return [
            draw.gauss(0, 2) - 4.0 * (i > 127) + 2.0 * (i in (10, 32, 41, 58)) + 5.0 * (i == 256)
            for i in range(257)
        ]

    made = xs.code("python", prefix=HEAD)
    done = [
        stub_model(logits).generate(
            [1], made, max_new_tokens=150, temperature=1.0, seed=seed, on_limit="close"
        )
        for seed in range(12)
    ]
    values = [each.value for each in done if each.complete]
    assert len(values) >= 4
    assert all(value.startswith(HEAD) for value in values)


@pytest.mark.slow
def test_a_mask_of_many_tokens() -> None:
    """Where nearly everything may follow, the mask of a vocabulary full of marks stays within the limits."""
    letters = sorted(set(string.printable[:95]))
    marks = "\"'()[]{}.,:=\n #%+-*xnu1"
    pieces = [*letters, *product(letters, repeat=2), *product(marks, repeat=3)]
    tokens = list(dict.fromkeys("".join(piece).encode() for piece in pieces))
    matcher, _ = xs.code("python").matcher(Vocabulary.from_tokens([*tokens, b""], end_ids=[len(tokens)]))
    assert matcher.consume_text("x = (a") == 6
    bits = np.unpackbits(matcher.mask(), bitorder="little")
    allowed = {token for token, bit in zip(tokens, bits, strict=False) if bit}
    assert {b"b", b"),", b" %x", b"\n  "} <= allowed
    assert not {b"]", b")]", b" %)"} & allowed


@pytest.mark.parametrize("language", ["toml", "ini"])
def test_a_name_given_twice(language: str) -> None:
    """That names differ is checked at the end, and said so."""
    made = xs.code(language)
    text = "[a]\nx = 1\nx = 2\n"
    assert made.accepts(text)
    with pytest.raises(OutputValidationError, match="own parser refuses"):
        made.parse(text)
    assert len(made.checked_after) == 1
    assert made.parse("[a]\nx = 1\ny = 2\n")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"language": "cobol"}, "'python'"),
        ({"language": "toml", "prefix": "def f():\n"}, "has none"),
        ({"prefix": "x = 1\n"}, "no `def`"),
    ],
)
def test_bad_arguments(arguments: dict[str, str], match: str) -> None:
    """What cannot be honoured is refused."""
    with pytest.raises(ArgumentError, match=match):
        xs.code(**arguments)


@pytest.mark.slow
def test_a_prefix_that_is_no_python() -> None:
    """A prefix that the grammar refuses is an error that says where."""
    with pytest.raises(ArgumentError, match="no beginning of a function"):
        xs.code("python", prefix="def f(:\n").accepts("    pass\n")
