"""How much of JSON Schema the masks enforce, and whether anything is dropped in silence.

    python -m benchmarks.soundness --schemas json_schemas.jsonl --suite json_schema_test_suite.jsonl

Rows of --schemas: {"id", "schema", "valid": [...], "invalid": [...]}; rows of --suite: {"id", "draft",
"optional", "schema", "tests": [{"data", "valid"}]}. Instances are serialised by json.dumps with ", " and
": ". An instance counts as taken when its text, or the text with every object's members in declared order,
is taken byte by byte. Declared order: the names as `properties` mentions them when the schema is read from
top to bottom through $ref, allOf, anyOf, oneOf, if/then/else and dependent schemas (of alternatives, those
that the instance satisfies), then `required`, then the rest. Times are of this machine, one thread.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import referencing

import xpress_struct as xs
from xpress_struct.constraints.json_schema.dialects import validator_class
from xpress_struct.constraints.json_schema.sites import Places
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import XPressError

MASKED_TOKENS = 120
"""Tokens of the first valid instance at which a mask is timed."""


@dataclass
class Tally:
    """Counts over one data set; times in seconds."""

    schemas: int = 0
    compiled: int = 0
    enforced: int = 0
    valid: int = 0
    valid_refused: int = 0
    invalid: int = 0
    invalid_refused: int = 0
    silent: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    over: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    compile_times: list[float] = field(default_factory=list)
    mask_times: list[float] = field(default_factory=list)

    def result(self) -> dict[str, Any]:
        return {
            "schemas": self.schemas,
            "compiled_share": share(self.compiled, self.schemas),
            "fully_enforced_share": share(self.enforced, self.schemas),
            "mask_refusal_share": share(self.invalid_refused, self.invalid),
            "silent_unsound": len(self.silent),
            "valid_refused_share": share(self.valid_refused, self.valid),
            "compile_ms_p99": round(quantile(self.compile_times, 0.99) * 1e3, 2),
            "mask_us_p50": round(quantile(self.mask_times, 0.5) * 1e6, 1),
        }


def share(part: int, whole: int) -> float:
    return round(part / whole, 5) if whole else 0.0


def quantile(values: list[float], q: float) -> float:
    return sorted(values)[min(int(q * len(values)), len(values) - 1)] if values else 0.0


class Order:
    """Puts the members of an instance in declared order."""

    def __init__(self, schema: Any) -> None:
        self.kind = validator_class(schema)
        self.validator = self.kind(schema)
        self.resolver = Places(schema, {}).root.resolver

    def arrange(self, instance: Any) -> Any:
        return self._value(instance, [(self.validator.schema, self.resolver)])

    def _value(self, value: Any, schemas: list[Any]) -> Any:
        if isinstance(value, list):
            return [self._value(v, self._items(i, value, schemas)) for i, v in enumerate(value)]
        if not isinstance(value, dict):
            return value
        flat = [s for one in schemas for s in self._flat(one, value, 0)]
        names = [n for s, _ in flat for n in s.get("properties", {})]
        names += [n for s, _ in flat for n in _dependents(s)]
        names += [n for s, _ in flat for n in _names(s.get("required"))]
        names += [n for s, _ in flat for c in _constants(s, value) for n in c]
        order = [n for n in dict.fromkeys([*names, *value]) if n in value]
        return {n: self._value(value[n], self._member(n, flat)) for n in order}

    def _items(self, i: int, value: Any, schemas: list[Any]) -> list[Any]:
        found = []
        for s, r in (f for one in schemas for f in self._flat(one, value, 0)):
            items, prefix = s.get("items", True), s.get("prefixItems", [])
            if isinstance(items, list):
                items, prefix = s.get("additionalItems", True), items
            found.append((prefix[i] if i < len(prefix) else items, r))
        return found

    @staticmethod
    def _member(name: str, flat: list[Any]) -> list[Any]:
        found = []
        for s, r in flat:
            if name in s.get("properties", {}):
                found.append((s["properties"][name], r))
            else:
                found.append((s.get("additionalProperties", True), r))
                found += [(p, r) for p in s.get("patternProperties", {}).values()]
        return found

    def _flat(self, one: Any, value: Any, depth: int) -> Iterator[Any]:
        schema, resolver = one
        if not isinstance(schema, dict) or depth > 30:
            return
        before = list(schema)
        first = next((i for i, k in enumerate(before) if k in ("properties",)), len(before))
        for i, keyword in enumerate(before):
            if i == first:
                yield schema, resolver
            inner = schema[keyword]
            if keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
                try:
                    found = resolver.lookup(inner)
                except referencing.exceptions.Unresolvable:
                    continue
                yield from self._flat((found.contents, found.resolver), value, depth + 1)
            elif keyword == "allOf":
                for s in inner:
                    yield from self._flat((s, resolver), value, depth + 1)
            elif keyword in ("anyOf", "oneOf"):
                for s in inner:
                    if self._holds(s, resolver, value):
                        yield from self._flat((s, resolver), value, depth + 1)
            elif keyword in ("if", "then", "else"):
                yield from self._flat((inner, resolver), value, depth + 1)
            elif keyword in ("dependencies", "dependentSchemas") and isinstance(value, dict):
                for name, s in inner.items():
                    if name in value:
                        yield from self._flat((s, resolver), value, depth + 1)
        if first == len(before):
            yield schema, resolver

    def _holds(self, schema: Any, resolver: Any, value: Any) -> bool:
        return bool(self.validator.evolve(schema=schema, _resolver=resolver).is_valid(value))


def _names(required: Any) -> list[str]:
    return required if isinstance(required, list) else []


def _dependents(schema: dict[str, Any]) -> list[str]:
    names: list[str] = []
    for keyword in ("dependencies", "dependentRequired"):
        for name, others in schema.get(keyword, {}).items():
            names += [name, *_names(others)]
    return names


def _constants(schema: dict[str, Any], value: Any) -> list[dict[str, Any]]:
    constants = [schema.get("const"), *schema.get("enum", ())]
    return [c for c in constants if isinstance(c, dict) and c == value]


def masks(constraint: xs.Constraint, vocabulary: Vocabulary, text: str) -> list[float]:
    """Seconds of the mask at each place of the first tokens of a text."""
    matcher, _ = constraint.matcher(vocabulary)
    times = []
    for token in vocabulary.encode(text)[:MASKED_TOKENS]:
        start = time.perf_counter()
        matcher.mask()
        times.append(time.perf_counter() - start)
        if not matcher.legal(token):
            break
        matcher.commit([token])
    return times


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def measure(
    tally: Tally,
    name: str,
    schema: Any,
    tests: list[tuple[Any, bool]],
    vocabulary: Vocabulary,
    options: dict[str, Any],
) -> None:
    tally.schemas += 1
    start = time.perf_counter()
    try:
        constraint = xs.json_schema(schema, **options)
    except XPressError as why:
        if not any(valid for _, valid in tests) and "no value satisfies" in str(why):
            tally.compiled += 1  # refusing a schema without values is right
            tally.enforced += 1
            tally.invalid += len(tests)
            tally.invalid_refused += len(tests)
            return
        tally.reasons[f"{type(why).__name__}: {str(why)[:60]}"] += 1
        tally.refused.append(f"{name}: {why}"[:200])
        return
    tally.compile_times.append(time.perf_counter() - start)
    tally.compiled += 1
    tally.enforced += not constraint.checked_after
    tally.left.update({c.keyword for c in constraint.checked_after})
    order: Order | None = None
    for data, valid in tests:
        text = dumps(data)
        taken = constraint.accepts(text)
        if not taken and isinstance(data, (dict, list)):
            order = order or Order(schema)
            text = dumps(order.arrange(data))
            taken = constraint.accepts(text)
        if valid:
            tally.valid += 1
            tally.valid_refused += not taken
            if not taken:
                tally.over.append(f"{name}: {text[:200]}")
        else:
            tally.invalid += 1
            tally.invalid_refused += not taken
            if taken and not constraint.checked_after:
                tally.silent.append(f"{name}: {text[:200]}")
    first = next((data for data, valid in tests if valid), None)
    if first is not None:
        tally.mask_times += masks(constraint, vocabulary, dumps(first))


def rows(path: Path, limit: int | None) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for i, line in enumerate(lines):
            if limit is not None and i >= limit:
                return
            yield json.loads(line)


def report(title: str, tally: Tally, verbose: bool) -> None:
    print(f"== {title}: {tally.schemas} schemas, {tally.valid} valid, {tally.invalid} invalid instances")
    for key, value in tally.result().items():
        print(f"   {key:22} {value}")
    for what, times, unit in (
        ("compile ms", tally.compile_times, 1e3),
        ("mask us", tally.mask_times, 1e6),
    ):
        spread = (f"{quantile(times, q) * unit:.1f}" for q in (0.5, 0.99, 1.0))
        print(f"   {what} p50/p99/max: {' / '.join(spread)}")
    print(f"   left to check after, by keyword: {dict(tally.left.most_common())}")
    for reason, count in tally.reasons.most_common():
        print(f"   refused {count:4}  {reason}")
    for line in tally.silent:
        print(f"   SILENTLY UNSOUND  {line}")
    if verbose:
        for line in tally.refused:
            print(f"   refused   {line}")
        for line in tally.over:
            print(f"   valid but not taken  {line}")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--schemas", type=Path, help="real schemas, JSON lines")
    parser.add_argument("--suite", type=Path, help="JSON-Schema-Test-Suite, JSON lines")
    parser.add_argument("--tokenizer", help="a transformers tokenizer; bytes when it is not given")
    parser.add_argument("--limit", type=int, help="rows of each file")
    parser.add_argument("--verbose", action="store_true", help="list every refused schema and instance")
    args = parser.parse_args(argv)
    vocabulary = Vocabulary.from_tokens([*(bytes([i]) for i in range(256)), b""], end_ids=[256])
    if args.tokenizer:
        from transformers import AutoTokenizer

        vocabulary = Vocabulary.from_tokenizer(AutoTokenizer.from_pretrained(args.tokenizer))
    result: dict[str, Any] = {}
    if args.schemas:
        real = Tally()
        for row in rows(args.schemas, args.limit):
            tests = [(v, True) for v in row["valid"]] + [(v, False) for v in row["invalid"]]
            measure(real, row["id"], row["schema"], tests, vocabulary, {})
        report("real schemas", real, args.verbose)
        result["real"] = real.result()
    if args.suite:
        suite = Tally()
        for row in rows(args.suite, args.limit):
            if "optional/content" in row["id"]:
                continue  # contentEncoding and contentMediaType are annotations here
            tests = [(t["data"], t["valid"]) for t in row["tests"]]
            # the suite takes formats as annotations, but for its optional format tests
            formats = "known" if row["optional"] and "format" in row["id"] else "ignore"
            schema = row["schema"]
            if isinstance(schema, dict) and "$schema" not in schema and row["draft"] == "draft7":
                schema = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
            name = f"{row['id']} {row['description']}"
            measure(suite, name, schema, tests, vocabulary, {"formats": formats})
        report("JSON-Schema-Test-Suite", suite, args.verbose)
        result["suite"] = suite.result()
    print("RESULT " + json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
