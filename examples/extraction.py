"""A typed object from a text.

python -m examples.extraction
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

import xpress_struct as xs

LETTER = (
    "Order 4711: please send two boxes of green tea and one kettle to Anna Berg, 12 Harbour Road, Oslo. "
    "She would like it by express."
)


class Item(BaseModel):
    """Something that is ordered."""

    name: str
    quantity: int


class Order(BaseModel):
    """An order."""

    number: int
    customer: str
    city: str
    delivery: Literal["standard", "express"]
    items: Annotated[list[Item], Field(min_length=1, max_length=2)]


def main() -> Order:
    """Extracts the order, piece by piece, and returns it."""
    model = xs.load()
    constraint = xs.json_schema(Order)
    with model.stream(f"Extract the order as JSON.\n\n{LETTER}", constraint, max_new_tokens=200) as pieces:
        for piece in pieces:
            print(piece, end="", flush=True)
    order: Order = pieces.result.value
    print(f"\n\n{order!r}\n{pieces.result.stats.tokens_per_forward:.1f} tokens per forward pass")
    return order


if __name__ == "__main__":
    main()
