"""The server, asked by the `openai` client as it asks OpenAI's. Needs the extra `server`, and `openai`.

python -m examples.openai_client
"""

from __future__ import annotations

import socket
import threading
import time

import uvicorn
from openai import OpenAI
from pydantic import BaseModel

import xpress_struct as xs
from xpress_struct.server.app import create_app

ASK = (
    "Extract the event from this text as JSON with its name, day and participants.\n\n"
    "Alice and Bob are going to a science fair on Friday."
)


class Event(BaseModel):
    name: str
    day: str
    participants: list[str]


def main() -> Event:
    """Starts the server, asks for an event, and returns it."""
    # In a terminal: xpress-struct serve --port 8000
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = uvicorn.Config(create_app(xs.load(), "smollm2"), port=port, log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)

    with OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none") as client:
        answer = client.chat.completions.parse(
            model="smollm2",
            messages=[{"role": "user", "content": ASK}],
            response_format=Event,
            temperature=0,
            max_tokens=100,
        )
    server.should_exit = True
    thread.join()
    event = answer.choices[0].message.parsed
    assert event is not None
    print(repr(event))
    return event


if __name__ == "__main__":
    main()
