"""Texts with facts in them, and schemas that ask for some of the facts."""

from __future__ import annotations

import random
from typing import Any

from xpress_struct.training.made_up import values as v
from xpress_struct.training.made_up.facts import DOMAINS, TEXTS, Fact
from xpress_struct.training.prompts import TrainPrompt
from xpress_struct.training.split import group_of

__all__ = ["extraction_prompt"]

_ASKS = (
    "Extract the data: {}",
    "Extract: {}",
    "{}",
    "Read the text and fill in the fields.\n\n{}",
    "Turn this into JSON: {}",
    "What does this text say?\n{}",
    "{}\n\nReturn the facts as JSON.",
)


def extraction_prompt(rng: random.Random, name: str) -> TrainPrompt:
    """One text with a schema of its own."""
    domain = rng.choice(list(DOMAINS))
    facts = DOMAINS[domain]
    asked = [facts[0], *rng.sample(facts[1:], rng.randint(1, 5))]
    rng.shuffle(asked)
    record = _record(rng, asked)
    several = rng.random() < 0.2
    schema = record if not several else _listed(rng, domain, record)
    text = " ".join(_text(rng, facts, asked) for _ in range(rng.randint(2, 3) if several else 1))
    ask = rng.choice(_ASKS).format(text)
    return TrainPrompt(name, "extraction", ask, {"json_schema": schema}, group_of(schema))


def _record(rng: random.Random, asked: list[Fact]) -> dict[str, Any]:
    described, keys = rng.random() < 0.5, {rng.choice(fact.names): fact for fact in asked}
    properties = {key: _type(fact, described) for key, fact in keys.items()}
    required = [key for key in properties if rng.random() < 0.85]
    if len(keys) > 3 and rng.random() < 0.25:
        inner = dict(list(properties.items())[-2:])
        for key in inner:
            del properties[key]
        properties["details"] = _object(inner, [key for key in inner if key in required])
        required = [key for key in required if key in properties] + ["details"]
    return _object(properties, required)


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _listed(rng: random.Random, domain: str, record: dict[str, Any]) -> dict[str, Any]:
    items = {"type": "array", "items": record, "minItems": 1}
    return items if rng.random() < 0.5 else _object({f"{domain}s": items}, [f"{domain}s"])


def _type(fact: Fact, described: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": fact.type}
    if fact.type == TEXTS:
        schema["items"] = {"type": "string"}
    elif "|" in fact.type:
        schema = {"enum": fact.type.split("|")}
    return schema | ({"description": fact.about} if described else {})


def _text(rng: random.Random, facts: tuple[Fact, ...], asked: list[Fact]) -> str:
    subject, others = facts[0], [fact for fact in asked if fact is not facts[0]]
    # Some of what the text says is not asked for.
    spare = [fact for fact in facts[1:] if fact not in others]
    others += rng.sample(spare, min(len(spare), rng.randint(0, 2)))
    rng.shuffle(others)
    clauses = [rng.choice(fact.clauses).format(fact.make(rng)) for fact in others]
    start = rng.choice(subject.clauses).format(subject.make(rng))
    if rng.random() < 0.5:
        return f"{start} {', '.join(clauses[:-1])}{' and ' if clauses[:-1] else ''}{clauses[-1]}."
    it = rng.choice(("It", "It also")) if subject.make is not v.person else start.split()[0]
    return " ".join([f"{start} {clauses[0]}.", *(f"{it} {clause}." for clause in clauses[1:])])
