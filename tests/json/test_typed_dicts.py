"""TypedDict as people write it, also before Python 3.12."""

from typing import Annotated, Optional, TypedDict, Union

import pytest
import typing_extensions
from pydantic import Field

import xpress_struct as xs


class Point(TypedDict):
    """A place."""

    x: int
    y: int


class Route(TypedDict, total=False):
    name: typing_extensions.Required[str]
    points: list[Point]
    best: Point | None
    length: Annotated[int, Field(ge=0)]


class Modern(typing_extensions.TypedDict):
    x: int


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Point, ['{"x": 1, "y": 2}'], ['{"x": 1}', '{"x": 1, "y": 2, "z": 3}', '{"x": "1", "y": 2}']),
        (
            Route,
            ['{"name": "a"}', '{"name": "a", "points": [{"x": 1, "y": 2}], "best": null, "length": 3}'],
            ["{}", '{"name": "a", "points": [{"x": 1}]}', '{"name": "a", "length": -1}'],
        ),
        (list[Point], ["[]", '[{"x": 1, "y": 2}]'], ["[{}]"]),
        (dict[str, Point], ['{"a": {"x": 1, "y": 2}}'], ['{"a": {}}']),
        (Union[Point, int], ["3", '{"x": 1, "y": 2}'], ['"3"']),
        (Optional[Point], ["null", '{"x": 1, "y": 2}'], ["3"]),
        (Modern, ['{"x": 1}'], ["{}"]),
    ],
)
def test_a_typed_dict_is_a_type(kind, good, bad):
    """A TypedDict of either module is enforced, alone and inside other types, and gives a dict."""
    constraint = xs.json_schema(kind)
    for text in good:
        assert constraint.accepts(text), text
    assert not any(constraint.accepts(text) for text in bad)
    assert constraint.parse(good[-1]) == xs.json_schema(constraint.schema).parse(good[-1])


def test_its_docstring_is_in_the_schema():
    """What a TypedDict says of itself reaches the prompt."""
    assert xs.json_schema(Point).schema["description"] == "A place."
