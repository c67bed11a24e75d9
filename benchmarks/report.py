"""Tables, notes and the RESULT line of `benchmarks.speed`."""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch

import xpress_struct as xs
from xpress_struct.lab.bench.meter import Run

__all__ = ["Report", "print_table"]

MASKED_PEERS = ("llguidance", "xgrammar", "outlines")
OURS = ("ours-none", "ours-lookup", "ours-all")
SHARES = ("valid", "valid of completed", "score", "mask share", "accepted", "guarded")
SHARES += ("parses", "prepares", "at once", "complete", "closed at the limit", "failed")


class Figures:
    """Sums and rates over runs of one system.

    Per-document figures and rates are over completed documents only: a runaway answer that is cut would
    count with all its (often repetitive, cheaply drafted) tokens. Only a system that completed nothing
    gets the rates of the documents that were cut, and no per-document figures.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.done = [run for run in runs if run.completed]

    def share(self, test: Callable[[Run], bool]) -> float | None:
        return sum(map(test, self.runs)) / len(self.runs) if self.runs else None

    def mean(self, amount: Callable[[Run], float]) -> float | None:
        return sum(map(amount, self.done)) / len(self.done) if self.done else None

    def rate(self, above: Callable[[Run], float], below: Callable[[Run], float]) -> float | None:
        runs = self.done or [run for run in self.runs if run.answer is not None]
        bottom = sum(map(below, runs))
        return sum(map(above, runs)) / bottom if bottom else None

    def table(self) -> dict[str, float | int | None]:
        return {
            "docs": len(self.runs),
            "completed": len(self.done),
            "closed": sum(run.answer is not None and run.answer.closed for run in self.runs),
            "valid": self.share(lambda run: run.valid),
            "valid of completed": self.mean(lambda run: run.valid),
            "score": self.share(lambda run: bool(run.score)),
            "tokens/doc": self.mean(tokens),
            "forwards/doc": self.mean(forwards),
            "tok/forward": self.rate(tokens, forwards),
            "decode s/doc": self.mean(decode_s),
            "cpu s/doc": self.mean(lambda run: run.decode_cpu_s),
            "end-to-end s/doc": self.mean(total_s),
            "compile s/doc": self.mean(lambda run: run.answer.compile_s),
            "tok/s": self.rate(decoded, decode_s),
            "tok/s e2e": self.rate(tokens, total_s),
            "mask share": self.rate(lambda run: run.answer.mask_s, decode_s),
            "accepted": self.rate(lambda run: run.answer.accepted, lambda run: run.answer.proposed),
            "guarded": self.rate(lambda run: run.answer.guarded, forwards),
        }

    def result(self) -> dict[str, float | None]:
        figures = {
            "valid_share": self.share(lambda run: run.valid),
            "score": self.share(lambda run: bool(run.score)),
            "tokens_per_s": self.rate(decoded, decode_s),
            "tokens_per_forward": self.rate(tokens, forwards),
            "forwards_per_doc": self.mean(forwards),
            "decode_s_per_doc": self.mean(decode_s),
        }
        return {name: None if v is None else round(v, 4) for name, v in figures.items()}


def tokens(run: Run) -> int:
    return len(run.answer.ids)


def decoded(run: Run) -> int:
    """Tokens that the seconds after the prefill brought; ours reads forced ones in the prefill."""
    return len(run.answer.ids) - run.prefilled


def forwards(run: Run) -> int:
    return run.forwards


def decode_s(run: Run) -> float:
    return run.decode_s


def total_s(run: Run) -> float:
    return run.total_s


class Report:
    """Everything that the benchmark prints on stdout."""

    def __init__(
        self,
        options: argparse.Namespace,
        runs: dict[str, list[Run]],
        failed: dict[str, str],
        model: xs.Model,
        prompts: dict[str, list[int]],
    ) -> None:
        self.options, self.runs, self.failed = options, runs, failed
        self.model, self.prompts = model, prompts
        self.result: dict[str, Any] = {}

    def print(self) -> None:
        for name in self.options.systems:
            figures = Figures(self.runs.get(name, [])).result()
            self.result[name] = figures | ({"error": self.failed[name]} if name in self.failed else {})
        print("\n## By system (per-document figures and rates: completed documents)\n")
        print_table(["system"], {(name,): Figures(r).table() for name, r in self.runs.items()})
        for name, error in self.failed.items():
            print(f"{name}: FAILED at setup: {error}")
        self._beside_plain()
        self._like_for_like()
        self._categories()
        self._notes()
        self._reasons()
        self._equal_ids()
        print("\nRESULT " + json.dumps(self.result))

    def _like_for_like(self) -> None:
        masked = {name: runs for name, runs in self.runs.items() if name != "plain"}
        everyone = _common(masked)
        self._ratio("every masked system", everyone, "speedup_vs_best_masked_peer")
        without = _common({name: runs for name, runs in masked.items() if name != "outlines"})
        if len(without) > len(everyone):
            self._ratio(
                "every masked system but outlines", without, "speedup_vs_best_masked_peer_no_outlines"
            )

    def _ratio(self, who: str, ids: set[str], key: str) -> None:
        columns = ("docs", "tokens/doc", "forwards/doc", "decode s/doc", "cpu s/doc")
        columns += ("end-to-end s/doc", "guarded")
        rows = {}
        for name, runs in self.runs.items():
            if name != "plain" and (who.endswith("system") or name != "outlines"):
                table = Figures([run for run in runs if run.task.id in ids]).table()
                rows[(name,)] = {column: table[column] for column in columns}
        print(f"\n## Like for like: the {len(ids)} documents that {who} completed\n")
        print_table(["system"], rows)
        for column, label in (("decode s/doc", "Decode"), ("end-to-end s/doc", "End to end")):
            times = {name: row[column] for (name,), row in rows.items() if row[column]}
            peers = [name for name in MASKED_PEERS if name in times]
            best = min(peers, key=times.__getitem__) if peers else None
            for name in (each for each in OURS if each in times):
                others = [other for other in (best, *OURS[: OURS.index(name)]) if other in times]
                said = "; ".join(f"beside {other}: {_over(times[name] / times[other])}" for other in others)
                print(f"{label} seconds per document, {name}, {said or 'alone'}")
            if best and column == "decode s/doc" and (mine := [name for name in OURS if name in times]):
                self.result[key] = round(times[best] / times[mine[-1]], 3)

    def _beside_plain(self) -> None:
        """Decode seconds per emitted token, forced ones counted, beside plain `generate`."""
        rates = {name: Figures(runs).rate(decode_s, tokens) for name, runs in self.runs.items()}
        plain = rates.get("plain")
        for name in OURS:
            if plain and rates.get(name):
                ratio = rates[name] / plain
                print(f"Decode seconds per emitted token, {name} beside plain: {_over(ratio)}")
                self.result[name]["speedup_per_token_vs_plain"] = round(1 / ratio, 3)

    def _categories(self) -> None:
        columns = ("docs", "completed", "valid", "score", "forwards/doc", "tok/forward")
        columns += ("decode s/doc", "end-to-end s/doc", "tok/s", "mask share", "accepted")
        rows = {}
        names = sorted({run.task.group for runs in self.runs.values() for run in runs})
        for category in names:
            for name, runs in self.runs.items():
                table = Figures([run for run in runs if run.task.group == category]).table()
                rows[(category, name)] = {column: table[column] for column in columns}
        print("\n## By category\n")
        print_table(["category", "system"], rows)

    def _notes(self) -> None:
        print("\n## Notes\n")
        for note in NOTES:
            print(f"- {note}")
        everything = [run for runs in self.runs.values() for run in runs]
        moved = [f"{run.task.id}" for run in everything if not run.same_prompt]
        print(f"- Runs whose prompt ids were not the common ones: {len(moved)} {moved[:3] or ''}")
        for name in OURS:
            figures = Figures(self.runs.get(name, []))
            early = figures.mean(lambda run: run.prefilled)
            share = figures.rate(lambda run: run.answer.apply_s, decode_s)
            if early is not None and share is not None:
                print(
                    f"- {name}: {early:.1f} forced tokens per document were read in the prefill; "
                    f"choosing tokens, masks and their application included, took {share:.1%} of decoding."
                )

    def _reasons(self) -> None:
        print("\n## Documents that are not valid, by reason\n")
        for name, runs in self.runs.items():
            counts = Counter(run.reason for run in runs if run.reason)
            where = defaultdict(list)
            for run in runs:
                where[run.reason].append(run.task.id)
            for reason, count in counts.most_common(12):
                print(f"- {name}: {count} x {reason} ({', '.join(where[reason][:3])})")
            if not counts:
                print(f"- {name}: none")

    def _equal_ids(self) -> None:
        print("\n## Equal ids\n")
        compared: list[bool] = []
        pairs = [("ours-none", name) for name in OURS[1:]] + [("llguidance", "ours-none")]
        for first, second in (pair for pair in pairs if set(pair) <= self.runs.keys()):
            both = zip(self.runs[first], self.runs[second], strict=True)
            answered = [(a, b) for a, b in both if a.answer and b.answer]
            differing = [(a, b) for a, b in answered if a.answer.ids != b.answer.ids]
            print(f"{first} and {second}: {len(differing)} of {len(answered)} documents differ.")
            if first == "ours-none":
                compared.append(not differing and bool(answered))
            if differing:
                print("  First difference: " + self._difference(*differing[0]))
        if compared:
            self.result["equal_ids"] = all(compared)

    def _difference(self, one: Run, other: Run) -> str:
        """Where two runs part, and how near the two tokens' logits are there."""
        a, b = one.answer.ids, other.answer.ids
        same = next((i for i, pair in enumerate(zip(a, b)) if pair[0] != pair[1]), None)  # noqa: B905
        if same is None:
            return f"{one.task.id}: one is the other's beginning ({len(a)} and {len(b)} tokens)."
        target = self.model.target
        row = target.score(target.new_cache(), self.prompts[one.task.id] + a[:same], 1)[0]
        gap = float(torch.abs(row[a[same]] - row[b[same]]))
        words = [repr(self.model.tokenizer.decode([ids[same]])) for ids in (a, b)]
        return (
            f"{one.task.id}, token {same}: {words[0]} or {words[1]}, logits {gap:.2e} apart "
            f"(float32 noise is about 1e-4)."
        )


NOTES = (
    "completed: ended by itself before the token limit. closed: ours closes what would be cut there "
    '(on_limit="close"). valid: completed or closed, and the whole text parses and passes '
    "jsonschema. score: makes exactly the acceptable calls (BFCL's rules, see "
    "xpress_struct/lab/bench/tasks/calls.py); shares are of all documents.",
    "forwards count the prefill. decode s: from the end of the first forward (the prefill) to the end; "
    "cpu s: the same stretch in processor time; end-to-end s has prompt, compilation, prefill and decoding.",
    "Rates of a system that completed no document are over the documents that were cut.",
    "tok/s: tokens that came after the prefill, by decode seconds; forced tokens that ours reads together "
    "with the prompt are left out. tok/s e2e: all tokens by end-to-end seconds.",
    "mask share: of decode seconds; peers: inside the logits processor; ours: finding masks, checking "
    "tokens and walking forced ones, without the application of a mask (see below).",
    'Layout: ", " and ": " without free blanks for llguidance, xgrammar and ours. Outlines has one pattern '
    'for blanks at every place; "[ ]?" (its default) takes that layout and others, so its model chooses '
    "blanks, and its token counts differ.",
    "Everything runs in one thread, xgrammar's compiler too; nothing is compiled before its document's "
    "turn. An Outlines index that takes longer than --compile-timeout (tried in another process) counts "
    "as not valid.",
    "llguidance's bits are unpacked and applied by numpy and torch in place: its own kernel is slower in "
    "numpy and needs a C++ compiler in torch.",
)


def _common(runs: dict[str, list[Run]]) -> set[str]:
    """Tasks that all of these systems completed."""
    done = [{run.task.id for run in each if run.completed} for each in runs.values()]
    return set.intersection(*done) if done else set()


def _over(ratio: float) -> str:
    return f"{ratio:.3f} = 1/{1 / ratio:.2f}"


def print_table(heads: list[str], rows: dict[tuple[str, ...], dict[str, Any]]) -> None:
    """Prints rows by their heads; columns named in SHARES as percentages."""
    if not rows:
        print("(nothing ran)")
        return
    columns = list(next(iter(rows.values())))
    lines = [[*heads, *columns]]
    lines += [[*key, *(_show(row[name], name) for name in columns)] for key, row in rows.items()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [
            cell.ljust(width) if place < len(heads) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def _show(value: float | int | None, column: str) -> str:
    if value is None:
        return "-"
    if column in SHARES:
        return f"{value:.1%}"
    return str(value) if isinstance(value, int) else f"{value:.3g}" if value < 10 else f"{value:.1f}"
