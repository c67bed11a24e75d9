"""Answers in OpenAI's shape, whole and in chunks, for both endpoints."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xpress_struct.constraints.tools import CallReader
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.results import Generation, TokenLogprobs

__all__ = ["ChatAnswer", "CompletionAnswer", "usage"]

_REASONS = {"stop": "stop", "stop_string": "stop", "closed": "stop", "length": "length"}


def usage(results: Iterable[tuple[int, Generation]], prompts: int) -> dict[str, int]:
    """Tokens of a request: (choice, result) pairs of all its choices. A prompt counts once."""
    results = list(results)
    per_prompt = len(results) // prompts
    read = sum(result.stats.prompt_tokens for choice, result in results if choice % per_prompt == 0)
    written = sum(result.stats.output_tokens for _, result in results)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


class _Answer:
    """One answer to a request, of several choices."""

    prefix: str
    kind: str
    chunk_kind: str

    def __init__(self, model: str, vocabulary: Vocabulary, token_name: Callable[[int], str]) -> None:
        self._vocabulary, self._token_name = vocabulary, token_name
        self._head = {
            "id": f"{self.prefix}-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model,
        }

    def whole(self, choices: Sequence[dict[str, Any]], used: dict[str, int]) -> dict[str, Any]:
        """The answer to a request without `stream`."""
        return {**self._head, "object": self.kind, "choices": list(choices), "usage": used}

    def chunk(self, choices: Sequence[dict[str, Any]], used: dict[str, int] | None = None) -> dict[str, Any]:
        """One event of a stream."""
        body = {**self._head, "object": self.chunk_kind, "choices": list(choices)}
        return body if used is None else {**body, "usage": used}

    def _shown(self, result: Generation) -> list[TokenLogprobs]:
        """The tokens that are text."""
        special = self._vocabulary.special_ids
        return [place for place in result.logprobs or () if place.token_id not in special]

    def _text(self, token: int) -> str:
        spelled = self._vocabulary.tokens[token]
        return spelled.decode("utf-8", errors="replace") if spelled else self._token_name(token)


class ChatAnswer(_Answer):
    """Of `/v1/chat/completions`.

    Args:
        calls: the answer may be a call of a tool.
    """

    prefix, kind, chunk_kind = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def __init__(
        self,
        model: str,
        vocabulary: Vocabulary,
        token_name: Callable[[int], str],
        *,
        calls: bool,
        top: int | None,
    ) -> None:
        super().__init__(model, vocabulary, token_name)
        self._calls, self._top = calls, top
        self._streams: dict[int, _ChatStream] = {}

    def choice(self, index: int, result: Generation) -> dict[str, Any]:
        """A finished choice."""
        message: dict[str, Any] = {"role": "assistant", "content": result.text, "refusal": None}
        if result.thinking is not None:
            message["reasoning_content"] = result.thinking
        reason = _REASONS[result.finish_reason]
        if self._calls:
            reader = CallReader()
            reader.feed(result.text)
            reader.finish(complete=result.complete)
            if reader.name is not None:
                reason = "tool_calls" if result.complete else reason
                function = {"name": reader.name, "arguments": reader.arguments}
                call = {"id": _call_id(), "type": "function", "function": function}
                message.update(content=None, tool_calls=[call])
        return {
            "index": index,
            "message": message,
            "finish_reason": reason,
            "logprobs": self._logprobs(result),
        }

    def begun(self, index: int, piece: str, *, thought: bool = False) -> list[dict[str, Any]]:
        """Choices of the chunks that a piece of text, or of the thoughts, makes."""
        stream = self._streams.setdefault(index, _ChatStream(index, self._calls))
        return stream.think(piece) if thought else stream.feed(piece)

    def ended(self, index: int, result: Generation) -> list[dict[str, Any]]:
        """Choices of the last chunks of a choice; its log-probabilities come here."""
        stream = self._streams.setdefault(index, _ChatStream(index, self._calls))
        made = stream.finish(result.complete)
        reason = _REASONS[result.finish_reason]
        if stream.called and result.complete:
            reason = "tool_calls"
        last = {"index": index, "delta": {}, "finish_reason": reason, "logprobs": self._logprobs(result)}
        return [*made, last]

    def _logprobs(self, result: Generation) -> dict[str, Any] | None:
        if self._top is None or result.logprobs is None:
            return None
        places = []
        for place in self._shown(result):
            best = [self._scored(token, score) for token, score in place.top[: self._top]]
            places.append({**self._scored(place.token_id, place.logprob), "top_logprobs": best})
        return {"content": places, "refusal": None}

    def _scored(self, token: int, score: float) -> dict[str, Any]:
        spelled = list(self._vocabulary.tokens[token])
        return {"token": self._text(token), "logprob": score, "bytes": spelled or None}


class _ChatStream:
    """The deltas of one choice."""

    def __init__(self, index: int, calls: bool) -> None:
        self._index, self._reader = index, CallReader() if calls else None
        self._begun = self.called = False
        self._sent = 0

    def feed(self, piece: str) -> list[dict[str, Any]]:
        if self._reader is None:
            return self._deltas({"content": piece})
        self._reader.feed(piece)
        return self._read()

    def think(self, piece: str) -> list[dict[str, Any]]:
        return self._deltas({"reasoning_content": piece})

    def finish(self, complete: bool) -> list[dict[str, Any]]:
        if self._reader is None:
            return self._deltas()
        self._reader.finish(complete=complete)
        return self._read()

    def _read(self) -> list[dict[str, Any]]:
        """What the reader has read since the last time."""
        reader = self._reader
        assert reader is not None
        if reader.name is None:
            new, self._sent = reader.content[self._sent :], len(reader.content)
            return self._deltas(*([{"content": new}] if new else []))
        made = []
        if not self.called:
            self.called = True
            function = {"name": reader.name, "arguments": ""}
            made.append({"index": 0, "id": _call_id(), "type": "function", "function": function})
        if new := reader.arguments[self._sent :]:
            self._sent = len(reader.arguments)
            made.append({"index": 0, "function": {"arguments": new}})
        return self._deltas(*({"tool_calls": [call]} for call in made))

    def _deltas(self, *deltas: dict[str, Any]) -> list[dict[str, Any]]:
        first: list[dict[str, Any]] = [] if self._begun else [{"role": "assistant", "content": ""}]
        self._begun = True
        return [
            {"index": self._index, "delta": delta, "finish_reason": None, "logprobs": None}
            for delta in (*first, *deltas)
        ]


def _call_id() -> str:
    return f"call_{secrets.token_hex(12)}"


class CompletionAnswer(_Answer):
    """Of `/v1/completions`."""

    prefix, kind, chunk_kind = "cmpl", "text_completion", "text_completion"

    def choice(self, index: int, result: Generation) -> dict[str, Any]:
        """A finished choice."""
        return {
            "index": index,
            "text": result.text,
            "finish_reason": _REASONS[result.finish_reason],
            "logprobs": self._logprobs(result),
        }

    def begun(self, index: int, piece: str, *, thought: bool = False) -> list[dict[str, Any]]:
        """Choices of the chunks that a piece of text makes; there are no thoughts here."""
        return [{"index": index, "text": piece, "finish_reason": None, "logprobs": None}]

    def ended(self, index: int, result: Generation) -> list[dict[str, Any]]:
        """Choices of the last chunks of a choice; its log-probabilities come here."""
        return [{**self.choice(index, result), "text": ""}]

    def _logprobs(self, result: Generation) -> dict[str, Any] | None:
        if result.logprobs is None:
            return None
        shown = self._shown(result)
        offsets, before = [], b""
        for place in shown:
            offsets.append(len(before.decode("utf-8", errors="replace")))
            before += self._vocabulary.tokens[place.token_id]
        return {
            "tokens": [self._text(place.token_id) for place in shown],
            "token_logprobs": [place.logprob for place in shown],
            "top_logprobs": [{self._text(token): score for token, score in place.top} for place in shown],
            "text_offset": offsets,
        }
