"""Texts with facts in them, and schemas that ask for some of the facts."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from xpress_struct.training.made_up import values as v
from xpress_struct.training.prompts import TrainPrompt
from xpress_struct.training.split import group_of

__all__ = ["extraction_prompt"]

_TEXT, _WHOLE, _NUMBER, _FLAG, _TEXTS = "string", "integer", "number", "boolean", "array"


class _Fact(NamedTuple):
    """Names a schema may give it, what it is, its type, its values, and clauses that state it."""

    names: tuple[str, ...]
    about: str
    type: str
    make: v.Maker
    clauses: tuple[str, ...]


_CURRENCIES = ("USD", "EUR", "GBP", "JPY")
_COLORS = ("red", "blue", "green", "black", "white", "grey", "yellow")

# A domain: what its texts are about, and facts; the first names the subject.
_DOMAINS: dict[str, tuple[_Fact, ...]] = {
    "person": (
        _Fact(("name", "full_name", "person"), "Full name of the person", _TEXT, v.person, ("{}",)),
        _Fact(
            ("age", "age_years"),
            "Age in years",
            _WHOLE,
            v.number(18, 90),
            ("is {} years old", "turned {} this year"),
        ),
        _Fact(
            ("city", "home_city", "lives_in"),
            "City of residence",
            _TEXT,
            v.one_of(*v.CITIES),
            ("lives in {}", "moved to {}"),
        ),
        _Fact(
            ("email", "email_address"),
            "Email address",
            _TEXT,
            v.email,
            ("can be reached at {}", "writes from {}"),
        ),
        _Fact(("phone", "phone_number"), "Phone number", _TEXT, v.phone, ("has the phone number {}",)),
        _Fact(
            ("occupation", "job_title", "profession"),
            "What the person does for a living",
            _TEXT,
            v.one_of(
                "nurse", "software engineer", "teacher", "chef", "pilot", "lawyer", "architect", "farmer"
            ),
            ("works as a {}", "is a {}"),
        ),
        _Fact(
            ("hobbies", "interests"),
            "Things done for fun",
            _TEXTS,
            v.some_of("chess", "hiking", "painting", "football", "cooking", "swimming", "reading"),
            ("likes {}", "spends weekends on {}"),
        ),
        _Fact(
            ("married", "is_married"),
            "Whether the person is married",
            _FLAG,
            v.one_of("married", "not married"),
            ("is {}",),
        ),
    ),
    "order": (
        _Fact(
            ("order_id", "id", "reference"),
            "Number of the order",
            _TEXT,
            lambda r: f"A-{r.randint(1000, 99999)}",
            ("Order {}",),
        ),
        _Fact(("customer", "customer_name", "buyer"), "Who ordered", _TEXT, v.person, ("was placed by {}",)),
        _Fact(
            ("product", "item", "product_name"),
            "What was ordered",
            _TEXT,
            v.one_of("desk lamp", "wireless mouse", "coffee grinder", "yoga mat", "backpack", "office chair"),
            ("contains the product {}", "is for a {}"),
        ),
        _Fact(
            ("quantity", "amount", "count"),
            "Number of items",
            _WHOLE,
            v.number(1, 40),
            ("asks for {} pieces",),
        ),
        _Fact(
            ("total", "price", "total_price"),
            "Total price",
            _NUMBER,
            v.amount(5, 900),
            ("costs {} in total", "comes to {}"),
        ),
        _Fact(
            ("currency",),
            "Currency of the price",
            "|".join(_CURRENCIES),
            v.one_of(*_CURRENCIES),
            ("is paid in {}",),
        ),
        _Fact(("order_date", "date", "ordered_on"), "Date of the order", _TEXT, v.date, ("was made on {}",)),
        _Fact(
            ("status", "order_status"),
            "State of the order",
            "pending|shipped|delivered|cancelled",
            v.one_of("pending", "shipped", "delivered", "cancelled"),
            ("is {}", "has the status {}"),
        ),
        _Fact(
            ("express", "is_express"),
            "Whether it is sent by express",
            _FLAG,
            v.one_of("by express", "by normal mail"),
            ("goes {}",),
        ),
    ),
    "event": (
        _Fact(
            ("title", "event", "name"),
            "Title of the event",
            _TEXT,
            v.one_of(
                "Spring Jazz Night",
                "Data Summit",
                "Food Fair",
                "City Marathon",
                "Robotics Workshop",
                "Poetry Evening",
            ),
            ("The {}",),
        ),
        _Fact(
            ("location", "venue", "city"),
            "Where it takes place",
            _TEXT,
            v.one_of(*v.CITIES),
            ("takes place in {}",),
        ),
        _Fact(("date", "start_date", "when"), "Day of the event", _TEXT, v.date, ("starts on {}",)),
        _Fact(("organizer", "host"), "Who organizes it", _TEXT, v.person, ("is organized by {}",)),
        _Fact(
            ("attendees", "expected_visitors"),
            "Number of visitors",
            _WHOLE,
            v.number(20, 5000),
            ("expects {} visitors",),
        ),
        _Fact(
            ("ticket_price", "price", "entry_fee"),
            "Price of a ticket",
            _NUMBER,
            v.amount(3, 120),
            ("costs {} dollars to enter",),
        ),
        _Fact(
            ("speakers", "guests"),
            "Who speaks or plays there",
            _TEXTS,
            v.some_of("Dr. Lee", "Ana Ruiz", "Prof. Stein", "Joe Kim", "Mila Novak"),
            ("features {}",),
        ),
        _Fact(
            ("online", "is_online"),
            "Whether it can be followed online",
            _FLAG,
            v.one_of("streamed online", "not streamed"),
            ("is {}",),
        ),
    ),
    "flight": (
        _Fact(
            ("flight_number", "flight", "code"),
            "Flight number",
            _TEXT,
            lambda r: f"{r.choice(('LH', 'BA', 'AF', 'UA'))}{r.randint(100, 999)}",
            ("Flight {}",),
        ),
        _Fact(
            ("origin", "from", "departure_city"),
            "City of departure",
            _TEXT,
            v.one_of(*v.CITIES),
            ("leaves from {}",),
        ),
        _Fact(
            ("destination", "to", "arrival_city"),
            "City of arrival",
            _TEXT,
            v.one_of(*v.CITIES),
            ("goes to {}", "lands in {}"),
        ),
        _Fact(("departure", "departure_date"), "Day of departure", _TEXT, v.date, ("departs on {}",)),
        _Fact(
            ("gate", "gate_number"),
            "Gate",
            _TEXT,
            lambda r: f"{r.choice('ABCD')}{r.randint(1, 60)}",
            ("boards at gate {}",),
        ),
        _Fact(("price", "fare"), "Price of the ticket", _NUMBER, v.amount(40, 1500), ("costs {}",)),
        _Fact(
            ("cabin", "cabin_class"),
            "Class",
            "economy|business|first",
            v.one_of("economy", "business", "first"),
            ("is booked in {} class",),
        ),
        _Fact(("stops", "number_of_stops"), "Number of stops", _WHOLE, v.number(0, 3), ("makes {} stops",)),
    ),
    "ticket": (
        _Fact(
            ("ticket_id", "id", "case_number"),
            "Number of the ticket",
            _TEXT,
            lambda r: f"T{r.randint(100, 9999)}",
            ("Ticket {}",),
        ),
        _Fact(("reporter", "user", "reported_by"), "Who reported it", _TEXT, v.person, ("was opened by {}",)),
        _Fact(
            ("summary", "problem", "issue"),
            "The problem in a few words",
            _TEXT,
            v.one_of(
                "the printer does not start",
                "login fails after the update",
                "the invoice shows a wrong amount",
                "the app crashes on launch",
                "no sound in video calls",
            ),
            ("says that {}", "reports: {}"),
        ),
        _Fact(
            ("priority", "urgency"),
            "How urgent it is",
            "low|medium|high",
            v.one_of("low", "medium", "high"),
            ("has {} priority",),
        ),
        _Fact(
            ("product", "component"),
            "Affected product",
            _TEXT,
            v.one_of("mobile app", "web portal", "billing", "printer"),
            ("concerns the {}",),
        ),
        _Fact(
            ("tags", "labels"),
            "Labels",
            _TEXTS,
            v.some_of("bug", "hardware", "billing", "network", "login", "urgent"),
            ("is labelled {}",),
        ),
        _Fact(("created", "opened_on", "date"), "Date of opening", _TEXT, v.date, ("was opened on {}",)),
        _Fact(
            ("resolved", "is_resolved"),
            "Whether it is solved",
            _FLAG,
            v.one_of("resolved", "still open"),
            ("is {}",),
        ),
    ),
    "product": (
        _Fact(
            ("name", "product", "model"),
            "Name of the product",
            _TEXT,
            v.one_of(
                "Aero 5 headphones",
                "Nimbus laptop",
                "Solis watch",
                "Terra boots",
                "Pixelar camera",
                "Kora kettle",
            ),
            ("The {}",),
        ),
        _Fact(
            ("brand", "manufacturer", "maker"),
            "Brand",
            _TEXT,
            v.one_of("Nordwell", "Acme", "Zenith", "Orbit", "Lumo"),
            ("is made by {}",),
        ),
        _Fact(
            ("price", "price_usd", "cost"),
            "Price in dollars",
            _NUMBER,
            v.amount(10, 2500),
            ("sells for ${}",),
        ),
        _Fact(
            ("rating", "stars", "review_score"),
            "Mean rating from 1 to 5",
            _NUMBER,
            lambda r: f"{r.uniform(1, 5):.1f}",
            ("is rated {} stars",),
        ),
        _Fact(("color", "colour"), "Color", _TEXT, v.one_of(*_COLORS), ("comes in {}",)),
        _Fact(
            ("weight_grams", "weight", "mass_g"),
            "Weight in grams",
            _WHOLE,
            v.number(20, 5000),
            ("weighs {} grams",),
        ),
        _Fact(
            ("features", "highlights"),
            "What it offers",
            _TEXTS,
            v.some_of("bluetooth", "fast charging", "touch screen", "waterproof case", "USB-C", "night mode"),
            ("offers {}",),
        ),
        _Fact(
            ("in_stock", "available"),
            "Whether it can be bought now",
            _FLAG,
            v.one_of("in stock", "sold out"),
            ("is {}",),
        ),
    ),
    "job": (
        _Fact(
            ("position", "title", "role"),
            "Title of the position",
            _TEXT,
            v.one_of(
                "Data Analyst",
                "Backend Developer",
                "Nurse",
                "Sales Manager",
                "Graphic Designer",
                "Accountant",
            ),
            ("The position of {}",),
        ),
        _Fact(
            ("company", "employer"),
            "Who hires",
            _TEXT,
            v.one_of("Brightline", "Northern Health", "Futura Labs", "GreenGrid", "Casa Verde"),
            ("is offered by {}",),
        ),
        _Fact(
            ("location", "city", "office"),
            "Where the work is done",
            _TEXT,
            v.one_of(*v.CITIES),
            ("is based in {}",),
        ),
        _Fact(
            ("salary", "annual_salary", "pay"),
            "Salary per year",
            _WHOLE,
            v.number(20000, 180000),
            ("pays {} a year",),
        ),
        _Fact(
            ("remote", "remote_allowed"),
            "Whether it can be done from home",
            _FLAG,
            v.one_of("done from home", "done in the office"),
            ("can be {}",),
        ),
        _Fact(
            ("skills", "required_skills"),
            "Skills",
            _TEXTS,
            v.some_of("Python", "SQL", "Excel", "English", "teamwork", "Java", "design"),
            ("asks for {}",),
        ),
        _Fact(
            ("contract", "employment_type"),
            "Kind of contract",
            "full-time|part-time|internship",
            v.one_of("full-time", "part-time", "internship"),
            ("is a {} job",),
        ),
        _Fact(("deadline", "apply_by"), "Last day to apply", _TEXT, v.date, ("is open until {}",)),
    ),
    "recipe": (
        _Fact(
            ("dish", "name", "recipe"),
            "Name of the dish",
            _TEXT,
            v.one_of(
                "Lentil Soup", "Mushroom Risotto", "Apple Pie", "Chicken Curry", "Greek Salad", "Veggie Tacos"
            ),
            ("{}",),
        ),
        _Fact(("servings", "serves"), "For how many people", _WHOLE, v.number(1, 12), ("serves {} people",)),
        _Fact(
            ("minutes", "cooking_time", "time_minutes"),
            "Minutes it takes",
            _WHOLE,
            v.number(5, 180),
            ("takes {} minutes",),
        ),
        _Fact(
            ("ingredients",),
            "Main ingredients",
            _TEXTS,
            v.some_of("onions", "garlic", "rice", "tomatoes", "butter", "apples", "cheese"),
            ("needs {}",),
        ),
        _Fact(
            ("difficulty", "level"),
            "How hard it is",
            "easy|medium|hard",
            v.one_of("easy", "medium", "hard"),
            ("is {} to make",),
        ),
        _Fact(
            ("calories", "kcal"), "Calories in a serving", _WHOLE, v.number(80, 1200), ("has {} calories",)
        ),
        _Fact(
            ("country", "cuisine", "origin"),
            "Where it comes from",
            _TEXT,
            v.one_of(*v.COUNTRIES),
            ("comes from {}",),
        ),
        _Fact(
            ("vegetarian", "is_vegetarian"),
            "Whether it is vegetarian",
            _FLAG,
            v.one_of("vegetarian", "not vegetarian"),
            ("is {}",),
        ),
    ),
}
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
    domain = rng.choice(list(_DOMAINS))
    facts = _DOMAINS[domain]
    asked = [facts[0], *rng.sample(facts[1:], rng.randint(1, 5))]
    rng.shuffle(asked)
    record = _record(rng, asked)
    several = rng.random() < 0.2
    schema = record if not several else _listed(rng, domain, record)
    text = " ".join(_text(rng, facts, asked) for _ in range(rng.randint(2, 3) if several else 1))
    ask = rng.choice(_ASKS).format(text)
    return TrainPrompt(name, "extraction", ask, {"json_schema": schema}, group_of(schema))


def _record(rng: random.Random, asked: list[_Fact]) -> dict[str, Any]:
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


def _type(fact: _Fact, described: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": fact.type}
    if fact.type == _TEXTS:
        schema["items"] = {"type": "string"}
    elif "|" in fact.type:
        schema = {"enum": fact.type.split("|")}
    return schema | ({"description": fact.about} if described else {})


def _text(rng: random.Random, facts: tuple[_Fact, ...], asked: list[_Fact]) -> str:
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
