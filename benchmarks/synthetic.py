"""Synthetic documents with structure: short JSON objects whose fields follow from each other.

A prompt names a kind of document, a country and a topic; the document's fields are drawn under conditions:
a surname under the first name, an area code under the city. Nothing is spelled out by the grammar
alone but keys and enumerations, so most letters depend on those to their left.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

__all__ = ["SCHEMAS", "document", "prompts"]

_NAME = {"type": "string", "pattern": "^[A-Z][a-z]{1,11} [A-Z][a-z]{1,11}$"}
_WORDS = {"type": "string", "pattern": "^[a-z]{1,12} [a-z]{1,12}$"}
_CITY = {"type": "string", "maxLength": 12}
_CLOCK = {"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$"}


def _schema(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SCHEMAS = {
    "person": _schema(
        name=_NAME,
        gender={"enum": ["female", "male"]},
        born={"type": "string", "format": "date"},
        city=_CITY,
        phone={"type": "string", "pattern": "^[0-9]{3} [0-9]{4}$"},
    ),
    "order": _schema(
        customer=_NAME,
        item=_WORDS,
        quantity={"type": "integer", "minimum": 1, "maximum": 99},
        price={"type": "string", "pattern": "^[0-9]{1,3}[.][0-9]{2}$"},
        paid={"type": "boolean"},
        city=_CITY,
    ),
    "event": _schema(
        title=_WORDS,
        host=_NAME,
        day={"enum": ["monday", "tuesday", "wednesday", "thursday", "friday"]},
        start=_CLOCK,
        room={"type": "string", "pattern": "^[A-E][0-9]{3}$"},
    ),
}
"""JSON schema of each kind of document."""

_FEMALE = {
    "spain": ["Maria", "Marta", "Lucia"],
    "italy": ["Giulia", "Chiara", "Elena"],
    "france": ["Claire", "Camille", "Manon"],
    "poland": ["Anna", "Zofia", "Hanna"],
}
_MALE = {
    "spain": ["Diego", "Pablo", "Manuel"],
    "italy": ["Luca", "Marco", "Matteo"],
    "france": ["Louis", "Hugo", "Mathieu"],
    "poland": ["Jan", "Adam", "Tomasz"],
}
_SURNAMES = {
    "spain": ["Lopez", "Garcia", "Martinez", "Ruiz", "Moreno"],
    "italy": ["Rossi", "Bianchi", "Ferrari", "Conti", "Romano"],
    "france": ["Martin", "Bernard", "Dubois", "Petit", "Moreau"],
    "poland": ["Nowak", "Kowalski", "Mazur", "Krawczyk", "Wojcik"],
}
_CITIES = {
    "spain": ["Madrid", "Seville", "Valencia", "Malaga"],
    "italy": ["Milan", "Rome", "Turin", "Naples"],
    "france": ["Paris", "Lyon", "Marseille", "Nantes"],
    "poland": ["Warsaw", "Krakow", "Gdansk", "Poznan"],
}
_TOPICS = {
    "person": ["1960", "1970", "1980", "1990"],
    "order": ["kitchen", "garden", "office", "sports"],
    "event": ["sales", "design", "legal", "health"],
}
_ITEMS = {
    "kitchen": ["copper pan", "bread knife", "glass bowl", "coffee mill"],
    "garden": ["water hose", "garden chair", "seed box", "steel rake"],
    "office": ["desk lamp", "paper tray", "swivel chair", "wall clock"],
    "sports": ["tennis racket", "yoga mat", "running shoes", "water bottle"],
}
_TITLES = {
    "sales": ["pipeline review", "customer call", "quarter kickoff"],
    "design": ["sketch review", "color workshop", "user test"],
    "legal": ["contract review", "privacy briefing", "patent call"],
    "health": ["safety training", "first aid", "morning run"],
}


def prompts() -> list[tuple[str, str]]:
    """Every kind of document with each of its prompts."""
    return [
        (kind, f"{kind} {country} {topic}\n")
        for kind, topics in _TOPICS.items()
        for country in _CITIES
        for topic in topics
    ]


def document(rng: random.Random, prompt: str) -> str:
    """A random document for a prompt, in the layout "spaced"."""
    kind, country, topic = prompt.split()
    fields = _Fields(rng, country, topic)
    return json.dumps({"person": fields.person, "order": fields.order, "event": fields.event}[kind]())


class _Fields:
    def __init__(self, rng: random.Random, country: str, topic: str) -> None:
        self._rng, self._country, self._topic = rng, country, topic

    def person(self) -> dict[str, Any]:
        gender = self._pick(["female", "male"], self._topic)
        name, city = self._name(gender), self._pick(_CITIES[self._country], self._topic)
        year = int(self._topic) + self._pick(range(10), gender)
        month, day = self._pick(range(1, 13), str(year)), self._pick(range(1, 29), gender)
        area = self._pick(range(200, 900), city)
        return {
            "name": name,
            "gender": gender,
            "born": f"{year}-{month:02}-{day:02}",
            "city": city,
            "phone": f"{area} {self._pick(range(1000, 9999), name)}",
        }

    def order(self) -> dict[str, Any]:
        item, city = self._pick(_ITEMS[self._topic], self._country), self._pick(_CITIES[self._country])
        return {
            "customer": self._name(self._pick(["female", "male"], self._topic)),
            "item": item,
            "quantity": self._pick([1, 2, 3, 6, 12, 24], item),
            "price": f"{self._pick(range(3, 120), item)}.{self._pick(['00', '50', '90', '95'], item)}",
            "paid": self._pick([True, False], item),
            "city": city,
        }

    def event(self) -> dict[str, Any]:
        title = self._pick(_TITLES[self._topic], self._country)
        host = self._name(self._pick(["female", "male"], title))
        day = self._pick(SCHEMAS["event"]["properties"]["day"]["enum"], title)
        return {
            "title": title,
            "host": host,
            "day": day,
            "start": f"{self._pick(range(8, 18), day):02}:{self._pick(['00', '15', '30', '45'], title)}",
            "room": f"{self._pick('ABCDE', host)}{self._pick(range(100, 500), title)}",
        }

    def _name(self, gender: str) -> str:
        first = self._pick((_FEMALE if gender == "female" else _MALE)[self._country], self._topic)
        return f"{first} {self._pick(_SURNAMES[self._country], first)}"

    def _pick(self, choices: Sequence[Any], *condition: str) -> Any:
        """Each condition has its own favourites: the n-th of its order is taken with probability 1/2^n."""
        order = random.Random(f"{condition} {choices[0]}").sample(choices, min(len(choices), 6))
        return next((choice for choice in order if self._rng.random() < 0.5), order[0])
