"""What a server counts, for Prometheus. Rates of speculation are quotients of its counters."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from xpress_struct.results import Generation
from xpress_struct.server.worker import Worker

__all__ = ["Metrics"]

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
_LENGTHS = (1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 16, 24)

# Fields of Stats -> what they count.
_COUNTED = {
    "prompt_tokens": "Tokens of prompts.",
    "output_tokens": "Tokens emitted, forced ones and end tokens included.",
    "forced": "Emitted tokens that were the only legal one.",
    "forwards": "Forward passes of the target.",
    "proposed": "Guesses of the drafter that the target checked.",
    "accepted": "Guesses that stood.",
    "guarded": "Rounds in which the guard held the drafter back.",
    "retries": "Answers drawn again after a failed final check.",
}


class Metrics:
    """The counters of one server."""

    def __init__(self, worker: Worker) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "xpress_requests", "Requests, by HTTP status.", ["path", "status"], registry=registry
        )
        self._finished = Counter("xpress_choices", "Answers, by their end.", ["reason"], registry=registry)
        self._counts = {
            name: Counter(f"xpress_{name}", text, registry=registry) for name, text in _COUNTED.items()
        }

        def seconds(name: str, text: str) -> Histogram:
            return Histogram(f"xpress_{name}_seconds", text, buckets=_SECONDS, registry=registry)

        self.request_s = seconds("request", "From arrival to the end of the answer.")
        self.queue_s = seconds("queue", "In the line before decoding.")
        self.compile_s = seconds("compile", "Reading and compiling the constraint, cached ones included.")
        self._first_token_s = seconds("first_token", "From the start of decoding to the first drawn token.")
        self._decode_s = seconds("decode", "Decoding of one answer.")
        self._acceptance = Histogram(
            "xpress_acceptance_rate", "Of an answer's guesses.", buckets=_SHARES, registry=registry
        )
        self._per_forward = Histogram(
            "xpress_tokens_per_forward", "Of an answer.", buckets=_LENGTHS, registry=registry
        )
        waiting = Gauge("xpress_requests_waiting", "Requests in the line.", registry=registry)
        waiting.set_function(lambda: worker.waiting)
        running = Gauge("xpress_requests_running", "Requests that decode: 0 or 1.", registry=registry)
        running.set_function(lambda: worker.busy)

    def note(self, result: Generation) -> None:
        """Counts one answer."""
        stats = result.stats
        self._finished.labels(result.finish_reason).inc()
        for name, counter in self._counts.items():
            counter.inc(getattr(stats, name))
        self._decode_s.observe(stats.total_s)
        if stats.first_token_s is not None:
            self._first_token_s.observe(stats.first_token_s)
        if stats.proposed:
            self._acceptance.observe(stats.acceptance_rate)
        if stats.forwards:
            self._per_forward.observe(stats.tokens_per_forward)

    def text(self) -> bytes:
        """The exposition format 0.0.4."""
        return generate_latest(self._registry)
