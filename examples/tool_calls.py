"""Tools on the embedded model: a call that is run, and one behind a block of thoughts.

python -m examples.tool_calls
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

import xpress_struct as xs

QUESTION = "How warm is it in Madrid today, in degrees Celsius?"


def weather(city: str, unit: Literal["Celsius", "Fahrenheit"] = "Celsius") -> str:
    """Tells how warm it is in a city today."""
    return f"In {city} it is 21 degrees {unit}."


class SendMail(BaseModel):
    """Sends a mail to somebody."""

    to: str
    subject: str


def main() -> None:
    """Asks for a call, runs it, and asks again with thoughts in front."""
    model = xs.load()
    tools = xs.tools([weather, SendMail])

    call = model.generate_json(QUESTION, tools, max_new_tokens=80)
    print(f"The model calls {call.name} with {call.arguments!r}.")
    if call.name == "weather":
        print(f"Which returns: {call.run()}")

    prompt = model.prompt_with_schema(QUESTION, tools)
    result = model.generate(prompt, tools, thinking=True, max_new_tokens=160, max_thinking_tokens=40)
    print(f"\nWith thoughts in front:\n{result.thinking}\n-> {result.value!r}")

    unaided = model.generate(
        prompt, tools, thinking=True, max_new_tokens=160, max_thinking_tokens=40, drafter=None
    )
    assert unaided.token_ids == result.token_ids, "speculation changed a token"
    print("Without speculation the tokens are the same, token by token.")


if __name__ == "__main__":
    main()
