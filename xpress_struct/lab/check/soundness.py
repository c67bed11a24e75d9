"""Soundness of masks: outputs satisfy their schemas, and two ways of asking the engine agree."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.json_schema import json_schema
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import OutputValidationError
from xpress_struct.lab.check.decoders import Ask, Decode
from xpress_struct.lab.check.report import Section, Verdict
from xpress_struct.model import Model
from xpress_struct.sampling import Rule, unpack_mask

__all__ = ["SCHEMAS", "check_soundness"]

SCHEMAS: Mapping[str, Any] = {
    "record": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 6},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
            "kind": {"enum": ["cat", "dog", "bird"]},
        },
        "required": ["name", "age", "kind"],
        "additionalProperties": False,
    },
    "list": {
        "type": "array",
        "items": {"type": "number", "minimum": -5, "maximum": 5},
        "minItems": 2,
        "maxItems": 4,
    },
    "either": {"anyOf": [{"const": None}, {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}]},
}
"""Asked when none are given."""

# Tokens of each place about which mask and engine are asked.
_TOKENS = 24
_RULES: tuple[Rule, ...] = ("coupled", "token", "block")


def check_soundness(
    model: Model,
    decode: Decode,
    prompt: Sequence[int],
    schemas: Mapping[str, Any],
    *,
    outputs: int,
    max_new_tokens: int,
    seed: int,
) -> list[Section]:
    """One section a schema: whole outputs are validated with jsonschema, and at every place of each output
    the mask is held against what the engine says of single tokens.

    Args:
        schemas: by name; a JSON Schema, a Python type or a constraint.
        outputs: of each schema, every acceptance rule in turn.
    """
    sections = []
    for name, schema in schemas.items():
        constraint = schema if isinstance(schema, Constraint) else json_schema(schema)
        rng, found = random.Random(seed), _Found()
        for number in range(outputs):
            rule = _RULES[number % len(_RULES)]
            ask = Ask(rule, 0.0 if rule == "coupled" else 1.0, max_new_tokens, seed + number)
            try:
                output = decode(model, prompt, constraint, ask)
            except OutputValidationError:
                # What is checked after generation is not the mask's affair.
                found.refused += 1
                continue
            _follow(constraint, model.vocabulary, output, rng, found)
        sections.append(_section(f"mask: {name}", outputs, found))
    return sections


@dataclass
class _Found:
    faults: list[str] = field(default_factory=list)
    asked: int = 0
    whole: int = 0
    refused: int = 0


def _section(name: str, outputs: int, found: _Found) -> Section:
    detail = f"{found.whole} of {outputs} outputs whole and valid, {found.asked} tokens asked twice"
    if found.refused:
        detail += f"; {found.refused} failed a check that comes after generation"
    if found.faults:
        detail += f"; {len(found.faults)} faults, the first: {found.faults[0]}"
    verdict: Verdict = "fail" if found.faults else "pass" if found.whole else "inconclusive"
    return Section(name, verdict, len(found.faults), None, None, detail)


def _follow(
    constraint: Constraint, vocabulary: Vocabulary, output: Sequence[int], rng: random.Random, found: _Found
) -> None:
    """Walks an output, asks about tokens of each place, and validates the text if it is whole."""
    matcher, _ = constraint.matcher(vocabulary)
    for place, token in enumerate(output):
        if matcher.ended:
            found.faults.append(f"token {place} follows the end")
            return
        mask = unpack_mask(torch.from_numpy(matcher.mask()), vocabulary.width)
        legal = mask.nonzero().flatten().tolist()
        some = [token, *rng.sample(legal, min(len(legal), _TOKENS // 2))]
        some += rng.choices(range(len(vocabulary.tokens)), k=_TOKENS // 2)
        found.asked += len(some)
        strange = [each for each in some if matcher.legal(each) != bool(mask[each])]
        if strange:
            found.faults.append(f"mask and engine differ about token {strange[0]} at place {place}")
        if not mask[token]:
            found.faults.append(f"token {token} at place {place} is not legal")
            return
        matcher.commit([token])
    if not matcher.complete:
        return
    text = vocabulary.decode(output[:-1] if matcher.ended_silently else output).decode("utf-8")
    try:
        constraint.parse(text)
        found.whole += 1
    except OutputValidationError as error:
        found.faults.append(f"{text!r}: {error}")
