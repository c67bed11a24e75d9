"""Servers over scripted models: in this process, and on a free port."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
import uvicorn

from tests.api.tiny import CHATML, byte_level, scripted
from tests.stubs import Logits
from xpress_struct.model import Model
from xpress_struct.server.app import create_app
from xpress_struct.server.limits import Limits

TOKENIZER = byte_level(CHATML)
HEADER = TOKENIZER.encode("<|im_start|>assistant\n", add_special_tokens=False)
END = TOKENIZER.eos_token_id
URL = "http://server"


def _place(prefix: Sequence[int]) -> int:
    """How many tokens of an answer stand: those behind the last assistant's header."""
    for i in range(len(prefix) - len(HEADER), -1, -1):
        if list(prefix[i : i + len(HEADER)]) == HEADER:
            return len(prefix) - i - len(HEADER)
    return 0


def wants(*texts: str) -> Logits:
    """Logits of a chat model that wants to write the first of the texts, less so the others, and to end."""
    wanted = [[*TOKENIZER.encode(text, add_special_tokens=False), END] for text in texts]

    def logits(prefix: tuple[int, ...]) -> list[float]:
        row = [0.0] * len(TOKENIZER)
        place = _place(prefix)
        for weight, ids in zip((30.0, 25.0, 20.0), wanted, strict=False):
            token = ids[min(place, len(ids) - 1)]
            row[token] = max(row[token], weight)
        return row

    return logits


def babbles(prefix: tuple[int, ...]) -> list[float]:
    """Logits without a meaning, the same for the same prefix; quotes and brackets are likely, so it ends."""
    shift = zlib.crc32(str(prefix[-12:]).encode())
    row = [float((i * 7919 + shift) % 97) / 16 for i in range(len(TOKENIZER))]
    for byte in b'"}],':
        row[byte] += 4.0
    return row


def by_word(models: Mapping[str, Logits], other: Logits) -> Logits:
    """Logits of the model whose word is the first message of the prompt, else of the other."""

    def logits(prefix: tuple[int, ...]) -> Sequence[float]:
        text = bytes(token for token in prefix if token < 256).decode(errors="replace")
        for word, model in models.items():
            if f"user\n{word}" in text:
                return model(prefix)
        return other(prefix)

    return logits


def slow(logits: Logits, seconds: float) -> Logits:
    """The same, but it takes time."""

    def late(prefix: tuple[int, ...]) -> Sequence[float]:
        time.sleep(seconds)
        return logits(prefix)

    return late


def model_of(logits: Logits) -> Model:
    """A chat model without a drafter."""
    return scripted(TOKENIZER, logits)


class InProcess:
    """A server without a socket: requests in, (status, body) out."""

    def __init__(self, model: Model, **limits: Any) -> None:
        self.model = model
        self.app = create_app(model, "tiny", Limits(**limits))

    def post(self, path: str, body: Any, **options: Any) -> tuple[int, Any]:
        """Posts JSON, or bytes as they are."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        options.setdefault("headers", {"Content-Type": "application/json"})
        return self._send("POST", path, content=content, **options)

    def get(self, path: str) -> tuple[int, Any]:
        return self._send("GET", path)

    def chat(self, **fields: Any) -> tuple[int, Any]:
        """A chat request to the model."""
        given = {"model": "tiny", "messages": [{"role": "user", "content": "Q"}], "temperature": 0}
        return self.post("/v1/chat/completions", {**given, **fields})

    def _send(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        async def go() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
                return await client.request(method, path, **options)

        response = asyncio.run(go())
        told = response.headers.get("content-type", "")
        return response.status_code, response.json() if "json" in told else response.text

    def close(self) -> None:
        self.app.state.service.close()


@contextmanager
def in_process(model: Model, **limits: Any) -> Iterator[InProcess]:
    server = InProcess(model, **limits)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def on_a_port(model: Model, **limits: Any) -> Iterator[str]:
    """A server under uvicorn; the address of its API."""
    app = create_app(model, "tiny", Limits(**limits))
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=2))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def events(text: str) -> list[Any]:
    """The events of a stream; its end as the text "[DONE]"."""
    found = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    return [item if item == "[DONE]" else json.loads(item) for item in found]
