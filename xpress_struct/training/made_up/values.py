"""Values that made-up prompts are filled with."""

from __future__ import annotations

import random
from collections.abc import Callable

__all__ = [
    "CITIES",
    "COUNTRIES",
    "Maker",
    "amount",
    "date",
    "email",
    "number",
    "one_of",
    "person",
    "phone",
    "some_of",
]

Maker = Callable[[random.Random], str]
"""Draws the text of a value."""

_FIRST = """
Maria John Aisha Wei Lena Omar Priya Lucas Ingrid Kofi Sofia Daniel Yuki Fatima Pedro Anna Mateo Chloe Ivan
Grace Hugo Nadia Tom Elif Samuel Rosa Viktor Amara Peter Leila Carlos Emma Raj Olga Ben Mina Jonas Alice
Felix Diana Noah Zara Paul Irene Marco Helen
"""
_LAST = """
Lopez Smith Khan Zhang Meyer Haddad Patel Silva Larsen Mensah Rossi Brown Tanaka Rahman Costa Novak Garcia
Dubois Petrov Okafor Laurent Aydin Cohen Moreno Kowalski Diallo Jensen Farsi Ruiz Wilson Gupta Ivanova
Baker Park Weber Johnson Schmidt Ali Evans Hughes Bianchi Clark
"""
CITIES = (
    "Madrid",
    "Berlin",
    "Paris",
    "Nairobi",
    "Osaka",
    "Toronto",
    "Lima",
    "Oslo",
    "Cairo",
    "Mumbai",
    "Boston",
    "Lisbon",
    "Seoul",
    "Prague",
    "Chicago",
    "Dublin",
    "Accra",
    "Vienna",
    "Sydney",
    "Santiago",
    "New York",
    "San Diego",
    "Cape Town",
    "Buenos Aires",
)
COUNTRIES = (
    "Spain",
    "Germany",
    "France",
    "Kenya",
    "Japan",
    "Canada",
    "Peru",
    "Norway",
    "Egypt",
    "India",
    "Brazil",
)
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def person(rng: random.Random) -> str:
    return f"{rng.choice(_FIRST.split())} {rng.choice(_LAST.split())}"


def email(rng: random.Random) -> str:
    host = rng.choice(("example.com", "mail.org", "acme.io", "uni.edu"))
    return f"{rng.choice(_FIRST.split()).lower()}.{rng.choice(_LAST.split()).lower()}@{host}"


def phone(rng: random.Random) -> str:
    return f"+{rng.randint(1, 99)} {rng.randint(100, 999)} {rng.randint(1000, 9999)}"


def date(rng: random.Random) -> str:
    year, month, day = rng.randint(1990, 2027), rng.randint(1, 12), rng.randint(1, 28)
    return rng.choice(
        (
            f"{year}-{month:02}-{day:02}",
            f"{_MONTHS[month - 1]} {day}, {year}",
            f"{day} {_MONTHS[month - 1]} {year}",
        )
    )


def number(low: int, high: int) -> Maker:
    """Whole numbers."""
    return lambda rng: str(rng.randint(low, high))


def amount(low: float, high: float) -> Maker:
    """Numbers with two digits behind the point."""
    return lambda rng: f"{rng.uniform(low, high):.2f}"


def one_of(*choices: str) -> Maker:
    return lambda rng: rng.choice(choices)


def some_of(*choices: str) -> Maker:
    """Two to four of the choices, as a list in words."""

    def draw(rng: random.Random) -> str:
        *some, last = rng.sample(choices, rng.randint(2, min(4, len(choices))))
        return f"{', '.join(some)} and {last}"

    return draw
