"""Errors as OpenAI writes them: an HTTP status, and `{"error": {message, type, param, code}}`."""

from __future__ import annotations

import logging
from typing import Any

from starlette.responses import JSONResponse

from xpress_struct.errors import (
    ArgumentError,
    CompileLimitError,
    DeadEndError,
    GrammarError,
    OutputValidationError,
    SchemaError,
    UnsupportedFeatureError,
    XPressError,
)

__all__ = ["RequestError", "as_request_error", "error_body", "error_response"]

_log = logging.getLogger("xpress_struct.server")

# What a request can be to blame for; the rest of the family is a fault here.
_CODES: tuple[tuple[type[XPressError], str], ...] = (
    (SchemaError, "invalid_json_schema"),
    (GrammarError, "invalid_grammar"),
    (UnsupportedFeatureError, "unsupported_feature"),
    (CompileLimitError, "constraint_too_large"),
    (DeadEndError, "dead_end"),
    (ArgumentError, "invalid_value"),
)


class RequestError(XPressError, ValueError):
    """A request that is not served.

    Attributes:
        status: of HTTP.
        param: the field concerned, as "messages.0.content", or None.
        code: a word for programs.
    """

    def __init__(
        self, message: str, *, status: int = 400, param: str | None = None, code: str = "invalid_value"
    ) -> None:
        self.status, self.param, self.code = status, param, code
        super().__init__(message)


def as_request_error(error: BaseException, param: str | None = None) -> RequestError:
    """Any error as one that can be told; what is not the library's own is logged, and told as a failure.

    Args:
        param: the field that was read when it happened.
    """
    if isinstance(error, RequestError):
        return error
    if isinstance(error, OutputValidationError):
        return RequestError(str(error), status=500, code="output_validation")
    for kind, code in _CODES:
        if isinstance(error, kind):
            return RequestError(str(error), param=param, code=code)
    _log.error("a request failed", exc_info=error)
    return RequestError("The server failed; its log says how.", status=500, code="internal_error")


def error_body(error: RequestError) -> dict[str, Any]:
    """The JSON of an error."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    return {"error": {"message": str(error), "type": kind, "param": error.param, "code": error.code}}


def error_response(error: RequestError) -> JSONResponse:
    """The HTTP response of an error. Only a full server is worth a second try."""
    headers = {"Retry-After": "1"} if error.status == 503 else {"x-should-retry": "false"}
    return JSONResponse(error_body(error), status_code=error.status, headers=headers)
