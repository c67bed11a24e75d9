"""Layouts: where blanks may stand (B24, B25), and that no run of them is endless (B3)."""

from __future__ import annotations

import json

import pytest

import xpress_struct as xs
from tests.stubs import byte_vocabulary
from xpress_struct.errors import ArgumentError

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "integer"}}},
    "required": ["a"],
    "additionalProperties": False,
}
VALUES = [{"a": "x"}, {"a": 'é " \\ \n', "b": []}, {"a": "", "b": [1, 2, 3]}]
WRITTEN = {
    "spaced": lambda value: json.dumps(value, ensure_ascii=False),
    "compact": lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
    "indented": lambda value: json.dumps(value, ensure_ascii=False, indent=2),
}


@pytest.mark.parametrize("layout", WRITTEN)
def test_a_layout_takes_what_json_writes_in_it_and_nothing_else(layout):
    """Each fixed layout is exactly that of json.dumps with its options."""
    constraint = xs.json_schema(SCHEMA, layout=layout)
    for value in VALUES:
        for other, write in WRITTEN.items():
            assert constraint.accepts(write(value)) is (write(value) == WRITTEN[layout](value)), other


def test_flexible_takes_all_of_them():
    """The flexible layout takes every layout of json.dumps, and single blanks of any kind."""
    constraint = xs.json_schema(SCHEMA, layout="flexible")
    for value in VALUES:
        assert all(constraint.accepts(write(value)) for write in WRITTEN.values())
    for blank in (" ", "\t", "\r", "\n", "\r\n", "\n    "):
        assert constraint.accepts(f'{{"a":{blank}"x"}}')


@pytest.mark.parametrize("blanks", ["  ", "\t\t", "\n\n", " \n", "\n" + " " * 25])
def test_flexible_blanks_are_bounded(blanks):
    """Runs of blanks that a pretty-printer would not write are refused."""
    assert not xs.json_schema(SCHEMA, layout="flexible").accepts(f'{{"a":{blanks}"x"}}')


def test_compact_forces_a_bare_quote():
    """After a key, the compact layout allows the quote and no blank."""
    matcher, _ = xs.json_schema(SCHEMA, layout="compact").matcher(byte_vocabulary())
    assert matcher.consume_text('{"a":') == 5
    assert matcher.legal(ord('"'))
    assert not matcher.legal(ord(" "))


def test_an_unknown_layout_is_refused():
    """The error lists the known layouts."""
    with pytest.raises(ArgumentError, match="'compact'"):
        xs.json_schema(SCHEMA, layout="wide")
