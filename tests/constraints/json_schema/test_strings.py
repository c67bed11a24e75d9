"""Lengths, patterns and formats (B19, B21, B23, B28)."""

from __future__ import annotations

import time
from datetime import date, datetime

import pytest

from tests.constraints.json_schema.verdicts import Row, Taker, check

TABLE = [
    # B23
    Row({"type": "string", "pattern": "\\S"}, ("a", " a "), ("", "  ")),
    Row({"type": "string", "pattern": "^b+$"}, ("b", "bbb"), ("", "abb", "bba")),
    Row({"type": "string", "pattern": "b+"}, ("abbc", "b"), ("", "ac")),
    Row({"type": "string", "pattern": "^(?!a)[a-z]+$"}, ("bc", "z"), ("abc", "", "B")),
    Row({"type": "string", "pattern": "^(?=.*[0-9])(?=.*[a-z]).{3,}$"}, ("ab1", "1zz"), ("abc", "12", "a1")),
    Row({"type": "string", "pattern": "(^|,)x(,|$)"}, ("x", "a,x", "x,b"), ("ax", "xb", "")),
    Row({"type": "string", "pattern": "a|^b"}, ("ca", "b", "bc"), ("cb", "")),
    Row({"type": "string", "pattern": "^\\d\\w\\.\\/$"}, ("1a./",), ("aa./", "1a")),
    Row({"type": "string", "pattern": "^\\p{Lu}$"}, ("A", "Ä"), ("a", "1")),
    Row({"type": "string", "pattern": "^(?<year>[0-9]{4})$"}, ("2024",), ("24",)),
    Row({"type": "string", "pattern": "^[^]*$"}, ("a",), (1,), ("pattern",)),
    Row({"type": "string", "pattern": "^(a)\\1$"}, ("aa", "ab"), (1,), ("pattern",)),
    Row({"type": "string", "pattern": "\\bfoo"}, ("foo",), (1,), ("pattern",)),
    Row({"type": "string", "pattern": "(?<!a)b"}, ("b",), (), ("pattern",)),
    # quotes, backslashes and control characters inside classes are what the pattern says
    Row({"type": "string", "pattern": '^[^"]+$'}, ("a", "\\", "\n"), ('"', 'a"b')),
    Row({"type": "string", "pattern": "^[^\\\\]+$"}, ("a", '"', "\n"), ("\\", "a\\b")),
    Row({"type": "string", "pattern": '^["\\\\]$'}, ('"', "\\"), ("a", "\n")),
    Row({"type": "string", "pattern": "^a.b$"}, ("a-b", "aéb"), ("a\nb", "ab")),
    # lengths count characters
    Row({"type": "string", "minLength": 2, "maxLength": 3}, ("ab", "éàü", "a\n"), ("a", "abcd")),
    Row({"type": "string", "pattern": "^a+$", "maxLength": 2}, ("a", "aa"), ("aaa",)),
    Row({"allOf": [{"pattern": "^a"}, {"pattern": "z$"}], "type": "string"}, ("az", "abz"), ("a", "z")),
    # complements
    Row({"type": "string", "not": {"pattern": "^a"}}, ("", "ba"), ("a", "ab")),
    Row({"type": "string", "not": {"enum": ["abc", "ab"]}}, ("", "a", "abcd"), ("abc", "ab")),
    Row({"type": "string", "not": {"minLength": 3}}, ("", "ab"), ("abc",)),
    Row({"type": "string", "not": {"maxLength": 3}}, ("abcd",), ("", "abc")),
    # formats: known ones are written, unknown ones are annotations
    Row({"type": "string", "format": "date"}, ("2024-02-29", "2023-12-31"), ("2023-02-29", "2024-2-1")),
    Row({"type": "string", "format": "date-time"}, ("2024-02-29T10:00:00Z",), ("2024-02-30T10:00:00Z", "x")),
    Row({"type": "string", "format": "uuid"}, ("2eb8aa08-aa98-11ea-b4aa-73b441d16380",), ("2eb8aa08",)),
    Row({"type": "string", "format": "ipv4"}, ("127.0.0.1",), ("256.0.0.1", "01.1.1.1")),
    Row({"type": "string", "format": "ipv6"}, ("::1", "fe80::1", "1:2:3:4:5:6:7:8"), ("1::2::3", "12345::")),
    Row({"type": "string", "format": "email"}, ("a.b@example.org",), ("a", "a@", ".a@b.c")),
    Row({"type": "string", "format": "uri"}, ("https://a.org/x?y#z", "file:///etc"), ("a b", "//a", "\\")),
    Row({"type": "string", "format": "hostname"}, ("a.example.org",), ("-a", "xn--x", "a..b")),
    Row({"type": "string", "format": "duration"}, ("P1DT2H", "P3W"), ("P", "1D", "PT")),
    Row({"type": "string", "format": "color"}, ("red", ""), (1,)),
    Row({"type": "string", "format": "regex"}, ("a+",), (1,), ("format",)),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row.schema)[:60])
def test_table(row: Row) -> None:
    check(row)


def test_formats_can_be_ignored() -> None:
    check(Row({"type": "string", "format": "date"}, ("tomorrow",)), formats="ignore")


def test_dates_are_what_python_reads() -> None:
    taker = Taker({"type": "string", "format": "date-time"})
    for text in ("2024-02-29T23:59:59.123456+02:00", "0001-01-01T00:00:00Z"):
        assert taker(text)
        datetime.fromisoformat(text.replace("Z", "+00:00"))
    dates = Taker({"type": "string", "format": "date"})
    assert all(dates(date(y, 2, 28).isoformat()) for y in (1, 1900, 2000, 9999))
    assert [y for y in (1900, 1904, 2000, 2023, 2024, 2100) if dates(f"{y}-02-29")] == [1904, 2000, 2024]
    assert not dates("0000-01-01")


def test_a_large_enumeration_compiles_quickly() -> None:  # B19
    schema = {"type": "string", "enum": [f"value{i}" for i in range(5000)], "maxLength": 12}
    start = time.perf_counter()
    taker = Taker(schema)
    assert time.perf_counter() - start < 2
    assert taker("value4999")
    assert not taker("value5000")


@pytest.mark.parametrize("limit", [128, 129, 200, 2000, 65535])
def test_lengths_are_exact(limit: int) -> None:  # B21
    start = time.perf_counter()
    taker = Taker({"type": "string", "maxLength": limit})
    assert time.perf_counter() - start < 1
    assert taker("x" * limit)
    assert not taker("x" * (limit + 1))


def test_a_bounded_class_is_exact() -> None:  # B21
    taker = Taker({"type": "string", "pattern": "^[^\n\r]{1,129}$"})
    assert taker("x" * 129)
    assert not taker("x" * 130)
    assert not taker("")
