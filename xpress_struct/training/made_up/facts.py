"""Facts by domain: what a made-up text may state and a schema may ask for."""

from __future__ import annotations

from typing import NamedTuple

from xpress_struct.training.made_up import values as v

__all__ = ["DOMAINS", "FLAG", "NUMBER", "TEXT", "TEXTS", "WHOLE", "Fact"]

TEXT, WHOLE, NUMBER, FLAG, TEXTS = "string", "integer", "number", "boolean", "array"


class Fact(NamedTuple):
    """Names a schema may give it, what it is, its type, its values, and clauses that state it."""

    names: tuple[str, ...]
    about: str
    type: str
    make: v.Maker
    clauses: tuple[str, ...]


_CURRENCIES = ("USD", "EUR", "GBP", "JPY")
_COLORS = ("red", "blue", "green", "black", "white", "grey", "yellow")

# A domain: what its texts are about, and facts; the first names the subject.
DOMAINS: dict[str, tuple[Fact, ...]] = {
    "person": (
        Fact(("name", "full_name", "person"), "Full name of the person", TEXT, v.person, ("{}",)),
        Fact(
            ("age", "age_years"),
            "Age in years",
            WHOLE,
            v.number(18, 90),
            ("is {} years old", "turned {} this year"),
        ),
        Fact(
            ("city", "home_city", "lives_in"),
            "City of residence",
            TEXT,
            v.one_of(*v.CITIES),
            ("lives in {}", "moved to {}"),
        ),
        Fact(
            ("email", "email_address"),
            "Email address",
            TEXT,
            v.email,
            ("can be reached at {}", "writes from {}"),
        ),
        Fact(("phone", "phone_number"), "Phone number", TEXT, v.phone, ("has the phone number {}",)),
        Fact(
            ("occupation", "job_title", "profession"),
            "What the person does for a living",
            TEXT,
            v.one_of(
                "nurse", "software engineer", "teacher", "chef", "pilot", "lawyer", "architect", "farmer"
            ),
            ("works as a {}", "is a {}"),
        ),
        Fact(
            ("hobbies", "interests"),
            "Things done for fun",
            TEXTS,
            v.some_of("chess", "hiking", "painting", "football", "cooking", "swimming", "reading"),
            ("likes {}", "spends weekends on {}"),
        ),
        Fact(
            ("married", "is_married"),
            "Whether the person is married",
            FLAG,
            v.one_of("married", "not married"),
            ("is {}",),
        ),
    ),
    "order": (
        Fact(
            ("order_id", "id", "reference"),
            "Number of the order",
            TEXT,
            lambda r: f"A-{r.randint(1000, 99999)}",
            ("Order {}",),
        ),
        Fact(("customer", "customer_name", "buyer"), "Who ordered", TEXT, v.person, ("was placed by {}",)),
        Fact(
            ("product", "item", "product_name"),
            "What was ordered",
            TEXT,
            v.one_of("desk lamp", "wireless mouse", "coffee grinder", "yoga mat", "backpack", "office chair"),
            ("contains the product {}", "is for a {}"),
        ),
        Fact(
            ("quantity", "amount", "count"),
            "Number of items",
            WHOLE,
            v.number(1, 40),
            ("asks for {} pieces",),
        ),
        Fact(
            ("total", "price", "total_price"),
            "Total price",
            NUMBER,
            v.amount(5, 900),
            ("costs {} in total", "comes to {}"),
        ),
        Fact(
            ("currency",),
            "Currency of the price",
            "|".join(_CURRENCIES),
            v.one_of(*_CURRENCIES),
            ("is paid in {}",),
        ),
        Fact(("order_date", "date", "ordered_on"), "Date of the order", TEXT, v.date, ("was made on {}",)),
        Fact(
            ("status", "order_status"),
            "State of the order",
            "pending|shipped|delivered|cancelled",
            v.one_of("pending", "shipped", "delivered", "cancelled"),
            ("is {}", "has the status {}"),
        ),
        Fact(
            ("express", "is_express"),
            "Whether it is sent by express",
            FLAG,
            v.one_of("by express", "by normal mail"),
            ("goes {}",),
        ),
    ),
    "event": (
        Fact(
            ("title", "event", "name"),
            "Title of the event",
            TEXT,
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
        Fact(
            ("location", "venue", "city"),
            "Where it takes place",
            TEXT,
            v.one_of(*v.CITIES),
            ("takes place in {}",),
        ),
        Fact(("date", "start_date", "when"), "Day of the event", TEXT, v.date, ("starts on {}",)),
        Fact(("organizer", "host"), "Who organizes it", TEXT, v.person, ("is organized by {}",)),
        Fact(
            ("attendees", "expected_visitors"),
            "Number of visitors",
            WHOLE,
            v.number(20, 5000),
            ("expects {} visitors",),
        ),
        Fact(
            ("ticket_price", "price", "entry_fee"),
            "Price of a ticket",
            NUMBER,
            v.amount(3, 120),
            ("costs {} dollars to enter",),
        ),
        Fact(
            ("speakers", "guests"),
            "Who speaks or plays there",
            TEXTS,
            v.some_of("Dr. Lee", "Ana Ruiz", "Prof. Stein", "Joe Kim", "Mila Novak"),
            ("features {}",),
        ),
        Fact(
            ("online", "is_online"),
            "Whether it can be followed online",
            FLAG,
            v.one_of("streamed online", "not streamed"),
            ("is {}",),
        ),
    ),
    "flight": (
        Fact(
            ("flight_number", "flight", "code"),
            "Flight number",
            TEXT,
            lambda r: f"{r.choice(('LH', 'BA', 'AF', 'UA'))}{r.randint(100, 999)}",
            ("Flight {}",),
        ),
        Fact(
            ("origin", "from", "departure_city"),
            "City of departure",
            TEXT,
            v.one_of(*v.CITIES),
            ("leaves from {}",),
        ),
        Fact(
            ("destination", "to", "arrival_city"),
            "City of arrival",
            TEXT,
            v.one_of(*v.CITIES),
            ("goes to {}", "lands in {}"),
        ),
        Fact(("departure", "departure_date"), "Day of departure", TEXT, v.date, ("departs on {}",)),
        Fact(
            ("gate", "gate_number"),
            "Gate",
            TEXT,
            lambda r: f"{r.choice('ABCD')}{r.randint(1, 60)}",
            ("boards at gate {}",),
        ),
        Fact(("price", "fare"), "Price of the ticket", NUMBER, v.amount(40, 1500), ("costs {}",)),
        Fact(
            ("cabin", "cabin_class"),
            "Class",
            "economy|business|first",
            v.one_of("economy", "business", "first"),
            ("is booked in {} class",),
        ),
        Fact(("stops", "number_of_stops"), "Number of stops", WHOLE, v.number(0, 3), ("makes {} stops",)),
    ),
    "ticket": (
        Fact(
            ("ticket_id", "id", "case_number"),
            "Number of the ticket",
            TEXT,
            lambda r: f"T{r.randint(100, 9999)}",
            ("Ticket {}",),
        ),
        Fact(("reporter", "user", "reported_by"), "Who reported it", TEXT, v.person, ("was opened by {}",)),
        Fact(
            ("summary", "problem", "issue"),
            "The problem in a few words",
            TEXT,
            v.one_of(
                "the printer does not start",
                "login fails after the update",
                "the invoice shows a wrong amount",
                "the app crashes on launch",
                "no sound in video calls",
            ),
            ("says that {}", "reports: {}"),
        ),
        Fact(
            ("priority", "urgency"),
            "How urgent it is",
            "low|medium|high",
            v.one_of("low", "medium", "high"),
            ("has {} priority",),
        ),
        Fact(
            ("product", "component"),
            "Affected product",
            TEXT,
            v.one_of("mobile app", "web portal", "billing", "printer"),
            ("concerns the {}",),
        ),
        Fact(
            ("tags", "labels"),
            "Labels",
            TEXTS,
            v.some_of("bug", "hardware", "billing", "network", "login", "urgent"),
            ("is labelled {}",),
        ),
        Fact(("created", "opened_on", "date"), "Date of opening", TEXT, v.date, ("was opened on {}",)),
        Fact(
            ("resolved", "is_resolved"),
            "Whether it is solved",
            FLAG,
            v.one_of("resolved", "still open"),
            ("is {}",),
        ),
    ),
    "product": (
        Fact(
            ("name", "product", "model"),
            "Name of the product",
            TEXT,
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
        Fact(
            ("brand", "manufacturer", "maker"),
            "Brand",
            TEXT,
            v.one_of("Nordwell", "Acme", "Zenith", "Orbit", "Lumo"),
            ("is made by {}",),
        ),
        Fact(
            ("price", "price_usd", "cost"),
            "Price in dollars",
            NUMBER,
            v.amount(10, 2500),
            ("sells for ${}",),
        ),
        Fact(
            ("rating", "stars", "review_score"),
            "Mean rating from 1 to 5",
            NUMBER,
            lambda r: f"{r.uniform(1, 5):.1f}",
            ("is rated {} stars",),
        ),
        Fact(("color", "colour"), "Color", TEXT, v.one_of(*_COLORS), ("comes in {}",)),
        Fact(
            ("weight_grams", "weight", "mass_g"),
            "Weight in grams",
            WHOLE,
            v.number(20, 5000),
            ("weighs {} grams",),
        ),
        Fact(
            ("features", "highlights"),
            "What it offers",
            TEXTS,
            v.some_of("bluetooth", "fast charging", "touch screen", "waterproof case", "USB-C", "night mode"),
            ("offers {}",),
        ),
        Fact(
            ("in_stock", "available"),
            "Whether it can be bought now",
            FLAG,
            v.one_of("in stock", "sold out"),
            ("is {}",),
        ),
    ),
    "job": (
        Fact(
            ("position", "title", "role"),
            "Title of the position",
            TEXT,
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
        Fact(
            ("company", "employer"),
            "Who hires",
            TEXT,
            v.one_of("Brightline", "Northern Health", "Futura Labs", "GreenGrid", "Casa Verde"),
            ("is offered by {}",),
        ),
        Fact(
            ("location", "city", "office"),
            "Where the work is done",
            TEXT,
            v.one_of(*v.CITIES),
            ("is based in {}",),
        ),
        Fact(
            ("salary", "annual_salary", "pay"),
            "Salary per year",
            WHOLE,
            v.number(20000, 180000),
            ("pays {} a year",),
        ),
        Fact(
            ("remote", "remote_allowed"),
            "Whether it can be done from home",
            FLAG,
            v.one_of("done from home", "done in the office"),
            ("can be {}",),
        ),
        Fact(
            ("skills", "required_skills"),
            "Skills",
            TEXTS,
            v.some_of("Python", "SQL", "Excel", "English", "teamwork", "Java", "design"),
            ("asks for {}",),
        ),
        Fact(
            ("contract", "employment_type"),
            "Kind of contract",
            "full-time|part-time|internship",
            v.one_of("full-time", "part-time", "internship"),
            ("is a {} job",),
        ),
        Fact(("deadline", "apply_by"), "Last day to apply", TEXT, v.date, ("is open until {}",)),
    ),
    "recipe": (
        Fact(
            ("dish", "name", "recipe"),
            "Name of the dish",
            TEXT,
            v.one_of(
                "Lentil Soup", "Mushroom Risotto", "Apple Pie", "Chicken Curry", "Greek Salad", "Veggie Tacos"
            ),
            ("{}",),
        ),
        Fact(("servings", "serves"), "For how many people", WHOLE, v.number(1, 12), ("serves {} people",)),
        Fact(
            ("minutes", "cooking_time", "time_minutes"),
            "Minutes it takes",
            WHOLE,
            v.number(5, 180),
            ("takes {} minutes",),
        ),
        Fact(
            ("ingredients",),
            "Main ingredients",
            TEXTS,
            v.some_of("onions", "garlic", "rice", "tomatoes", "butter", "apples", "cheese"),
            ("needs {}",),
        ),
        Fact(
            ("difficulty", "level"),
            "How hard it is",
            "easy|medium|hard",
            v.one_of("easy", "medium", "hard"),
            ("is {} to make",),
        ),
        Fact(("calories", "kcal"), "Calories in a serving", WHOLE, v.number(80, 1200), ("has {} calories",)),
        Fact(
            ("country", "cuisine", "origin"),
            "Where it comes from",
            TEXT,
            v.one_of(*v.COUNTRIES),
            ("comes from {}",),
        ),
        Fact(
            ("vegetarian", "is_vegetarian"),
            "Whether it is vegetarian",
            FLAG,
            v.one_of("vegetarian", "not vegetarian"),
            ("is {}",),
        ),
    ),
}
