"""Reads a call from text, whole or while it comes."""

from __future__ import annotations

import re

__all__ = ["CallReader"]

_HEADER = re.compile(r'\{"name": "([^"]+)", "arguments": ')


class CallReader:
    """Splits an answer into text, or name and arguments of a call, while it comes.

    Attributes:
        name: of the tool that is called, once it is known.
        content: the text so far.
        arguments: JSON text of the arguments so far.
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self.content = self.arguments = ""
        self._unread = ""

    def feed(self, piece: str) -> None:
        """Reads on."""
        self._unread += piece
        if not self._unread:
            return
        if self.name is None and (self.content or not self._unread.startswith("{")):
            self.content, self._unread = self.content + self._unread, ""
            return
        if self.name is None and (header := _HEADER.match(self._unread)):
            self.name, self._unread = header[1], self._unread[header.end() :]
        if self.name is not None:
            # The brace that closes the call is none of the arguments', so the last character waits.
            self.arguments, self._unread = self.arguments + self._unread[:-1], self._unread[-1:]

    def finish(self, *, complete: bool) -> None:
        """Reads what waited: of an answer that was cut, it belongs to what was begun."""
        if self.name is None:
            self.content, self._unread = self.content + self._unread, ""
        elif not complete:
            self.arguments, self._unread = self.arguments + self._unread, ""
