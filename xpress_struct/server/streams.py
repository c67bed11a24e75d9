"""Server-sent events: an answer while it comes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from xpress_struct.server.errors import as_request_error, error_body

__all__ = ["EventStream"]

_DONE = b"data: [DONE]\n\n"


class EventStream(Response):
    """A response of events, each of them JSON. An error is the last event, without `[DONE]` after it.

    Args:
        bodies: of the events.
        closing: what is closed at the end, also when the client has left.
    """

    media_type = "text/event-stream"

    def __init__(self, bodies: AsyncIterator[dict[str, Any]], closing: ExitStack) -> None:
        super().__init__(headers={"Cache-Control": "no-cache"})
        del self.headers["content-length"]
        self._bodies, self._closing = bodies, closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def say(data: bytes, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": more})

        with self._closing:
            start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            await send(start)
            last = _DONE
            try:
                async for body in self._bodies:
                    await say(_event(body))
            except OSError:  # the client has left
                return
            except Exception as error:
                last = _event(error_body(as_request_error(error)))
            await say(last, more=False)


def _event(body: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n".encode()
