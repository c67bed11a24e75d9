"""A request's body -> JSON, within bounds that are checked before it is read."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.requests import ClientDisconnect, Request

from xpress_struct.server.errors import RequestError
from xpress_struct.server.limits import Limits

__all__ = ["parse_json", "read_json"]

# Of a body that is too large, so much is read and dropped: a client that is still writing hears no answer.
_DRAINED = 16 << 20


async def read_json(request: Request, limits: Limits) -> dict[str, Any]:
    """The JSON object in a request's body.

    Raises:
        RequestError: it is too large (413), too slow (408), no JSON (415, 400), or no object.
    """
    # A web page can send other types across origins without asking.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RequestError("Content-Type must be application/json.", status=415, code="invalid_json")
    try:
        raw = await asyncio.wait_for(_read(request, limits.max_body_bytes), limits.body_timeout)
    except asyncio.TimeoutError:
        raise RequestError("The body came too slowly.", status=408, code="timeout") from None
    except ClientDisconnect:
        raise RequestError("The client has left.", status=499, code="cancelled") from None
    parsed = parse_json(raw, limits.max_depth)
    if not isinstance(parsed, dict):
        raise RequestError("The body must be a JSON object.", code="invalid_json")
    return parsed


async def _read(request: Request, most: int) -> bytes:
    raw, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= most:
            raw += chunk
        elif size > most + _DRAINED:
            break
    if size > most:
        raise RequestError(f"The body has more than {most} bytes.", status=413, code="request_too_large")
    return bytes(raw)


def parse_json(raw: bytes | str, max_depth: int, param: str | None = None) -> Any:
    """The value of a JSON text.

    Raises:
        RequestError: it is no JSON, no UTF-8, or nested too deeply.
    """

    def refused(why: str) -> RequestError:
        what = "The body" if param is None else param
        return RequestError(f"{what} is not JSON that can be read: {why}", param=param, code="invalid_json")

    try:
        text = raw.decode("utf-8") if isinstance(raw, bytes) else raw
        value = json.loads(text, parse_constant=_no_constant)
        if "\\ud" in text.lower():  # half a character, as an escape
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise refused(f"it is nested more than {max_depth} levels deep.") from None
    except ValueError as error:  # of UTF-8, JSON and numbers
        raise refused(f"{error}.") from None
    if _deeper_than(value, max_depth):
        raise refused(f"it is nested more than {max_depth} levels deep.")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _deeper_than(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most + 1):
        level = [
            inner
            for item in level
            if isinstance(item, (dict, list))
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True
