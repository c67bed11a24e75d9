"""The main job on the embedded model: a typed object from a text, and what plain generation answers.

make demo        or        python -m examples.demo
"""

from __future__ import annotations

import json
import time
from typing import Annotated, Literal

from pydantic import BaseModel, Field

import xpress_struct as xs

TEXT = (
    "Maria Lopez is a 34 year old teacher. She lives in Madrid, Spain and speaks Spanish, French and English."
)


class Address(BaseModel):
    """Where somebody lives."""

    city: str
    country: str


class Person(BaseModel):
    """Somebody in a text."""

    name: str
    age: Annotated[int, Field(ge=0, le=120)]
    address: Address
    profession: Literal["nurse", "lawyer", "engineer", "teacher"]
    languages: Annotated[list[str], Field(max_length=4)]


def main() -> None:
    """Runs both, checks the values that matter, prints the statistics."""
    started = time.perf_counter()
    model = xs.load()
    print(f"Model loaded in {time.perf_counter() - started:.1f} s.\n\nText: {TEXT}\n")

    # Names of keys say enough here; a model this small does worse with the whole schema in its prompt.
    prompt = f"Extract the person from this text as JSON.\n\n{TEXT}"
    constraint = xs.json_schema(Person)

    plain = model.generate(prompt, max_new_tokens=120, drafter=None)
    print(f"Plain generation answers:\n{plain.text}\n")
    print(f"Which is {'' if _validates(plain.text) else 'not '}a valid Person.\n")

    result = model.generate(prompt, constraint)
    person = result.value
    print(f"xpress_struct answers:\n{person!r}\n")
    assert isinstance(person, Person)
    assert (person.name, person.age, person.profession) == ("Maria Lopez", 34, "teacher"), person
    assert (person.address.city, person.address.country) == ("Madrid", "Spain"), person
    assert "Spanish" in person.languages, person

    unaided = model.generate(prompt, constraint, drafter=None)
    assert unaided.token_ids == result.token_ids, "speculation changed a token"
    print("Without speculation the tokens are the same, token by token.\n")

    rows = (
        ("tokens", result.stats.output_tokens, unaided.stats.output_tokens),
        ("of them forced by the grammar", result.stats.forced, unaided.stats.forced),
        ("forward passes of the model", result.stats.forwards, unaided.stats.forwards),
        ("tokens per forward", result.stats.tokens_per_forward, unaided.stats.tokens_per_forward),
        ("seconds", result.stats.total_s, unaided.stats.total_s),
        ("share of time in the grammar", result.stats.grammar_share, unaided.stats.grammar_share),
    )
    print(f"{'':32}{'with lookup':>12}{'without':>12}")
    for name, ours, without in rows:
        print(f"{name:32}{_number(ours):>12}{_number(without):>12}")
    print("\n" + json.dumps(result.stats.as_dict()))


def _validates(text: str) -> bool:
    try:
        Person.model_validate_json(text)
    except ValueError:
        return False
    return True


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}"


if __name__ == "__main__":
    main()
