"""Is this pair lossless here? Equal ids, exact distributions, n-grams and masks, under one error rate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

from xpress_struct.constraints.regex import regex
from xpress_struct.drafting.loading import as_drafter
from xpress_struct.errors import ArgumentError
from xpress_struct.lab.check.decoders import Ask, Decode, plain, speculative
from xpress_struct.lab.check.equal_ids import Case, check_equal_ids
from xpress_struct.lab.check.report import CheckReport, Section
from xpress_struct.lab.check.sampled import Draws, check_long, check_short, recalling, sample, short_tree
from xpress_struct.lab.check.soundness import SCHEMAS, check_soundness
from xpress_struct.model import Model
from xpress_struct.prompt import Prompt, encode_prompt
from xpress_struct.sampling import Rule

__all__ = ["check"]

# Prompts that repeat themselves, so that a lookup drafter has something to copy.
_PROMPTS = (
    'cats: [{"name": "Tom", "age": 3}, {"name": "Kit", "age": 7}, {"name": "Tom", "age": 3}]\ncats: ',
    "abba babe cafe abba babe cafe abba ",
)
_NUMBERS = "1213 1231 2113 1312 1213 1231 2113 1312 1213 12"
# Short outputs have few distinct ones, each with several drawn tokens.
_SHORT, _SHORT_TOKENS = "[1-3]{4}", 4
_LONG = "[a-f ]{200}"
_NODES = 96
# Of the time: equal ids and masks, then short samples; the rest is for the long ones.
_SHORT_SHARE = 0.5
_OTHER_SEEDS = 1_000_000


def check(
    model: Model,
    *,
    drafter: Any = "model",
    schemas: Mapping[str, Any] | None = None,
    prompts: Sequence[Prompt] | None = None,
    rules: Sequence[Rule] = ("coupled", "token", "block"),
    temperature: float = 0.7,
    samples: int = 2000,
    long_samples: int = 60,
    minutes: float = 2.5,
    horizon: int = 16,
    alpha: float = 1e-3,
    seed: int = 0,
    decode: Decode | None = None,
    progress: Callable[[Section], Any] = lambda section: None,
) -> CheckReport:
    """Checks that decoding with a drafter is decoding without it.

    Equal ids: greedily under every rule, and sampled under the coupled one, on the target itself. Short
    outputs (four digits) of the other rules, and of decoding without a drafter: chi-square against the
    enumerated masked distribution; the target remembers what it scored, so that thousands cost the forwards
    of a few. Long outputs: total variation of their 1- and 2-grams with and without the drafter, by a
    permutation test. Masks: outputs validated, and mask and engine asked about the same tokens.

    Args:
        drafter: "model" takes the model's own; else what `generate` takes.
        schemas: whose masks are tested, by name; None takes three small ones, {} tests none.
        prompts: for equal ids, long outputs and masks; None takes two that repeat themselves. The vocabulary
            must spell the letters a to f, the digits 1 to 3 and the blank.
        rules: that are tested.
        temperature: of the sampled outputs under the coupled rule and of the long ones; short ones take 1.
        samples, long_samples: at most, for each rule.
        minutes: after about so long, no more outputs are drawn; those that must be are.
        horizon: tokens of an output for equal ids and n-grams.
        alpha: probability that a lossless pair fails, shared among all statistical tests (Bonferroni).
        seed: of the draws.
        decode: what is tested in place of the model's own decoding.
        progress: called with each section.

    Raises:
        ArgumentError: there is no drafter, or an argument is outside its range.
    """
    _check_arguments(rules, temperature, samples, long_samples, minutes, horizon, alpha)
    chosen = model.drafter if isinstance(drafter, str) and drafter == "model" else as_drafter(drafter)
    if decode is None:
        if chosen is None or model.target.no_speculation is not None:
            reason = model.target.no_speculation or "it has no drafter"
            raise ArgumentError(f"There is nothing to check: {reason}.")
        decode, subject = speculative(chosen), f"drafter {chosen.name!r}, {', '.join(rules)}"
    else:
        subject = f"{getattr(decode, '__name__', type(decode).__name__)}, asked for {', '.join(rules)}"
    started = time.perf_counter()
    until = started + 60 * minutes
    given = _PROMPTS if prompts is None else prompts
    ids = [_ids(model, prompt, raw=prompts is None) for prompt in given]
    if not ids:
        raise ArgumentError("prompts: give one or more, or None.")
    exact = _exact(model, decode, ids, schemas, rules, temperature, horizon, seed)
    drawn = [rule for rule in rules if rule != "coupled"]
    level = alpha / (2 * len(drawn) + 1)
    budget = _Budget(until, samples, long_samples)
    sampled = _sampled(model, decode, ids[-1], drawn, temperature, horizon, seed, level, budget)
    sections = []
    for section in chain(exact, sampled if drawn else ()):
        sections.append(section)
        progress(section)
    return CheckReport(sections, alpha, subject, time.perf_counter() - started)


def _exact(
    model: Model,
    decode: Decode,
    prompts: Sequence[tuple[int, ...]],
    schemas: Mapping[str, Any] | None,
    rules: Sequence[Rule],
    temperature: float,
    horizon: int,
    seed: int,
) -> Iterator[Section]:
    """The tests that one violation fails."""
    cases = [Case(prompt, constraint) for prompt in prompts for constraint in (None, regex(_LONG))]
    for rule in rules:
        coupled = rule == "coupled"
        heats = (0.0, temperature) if coupled else (0.0,)
        asks = [Ask(rule, heat, horizon, seed) for heat in heats]
        yield check_equal_ids(model, decode, cases if coupled else cases[1:2], asks, f"equal ids: {rule}")
    masks = SCHEMAS if schemas is None else schemas
    yield from check_soundness(model, decode, prompts[0], masks, outputs=3, max_new_tokens=64, seed=seed)


class _Budget(NamedTuple):
    until: float
    samples: int
    long_samples: int

    def short(self, parts: int, since: float) -> float:
        """The moment at which the first of so many short tests that are left is over."""
        return _share(since + _SHORT_SHARE * max(0.0, self.until - since), parts)


def _sampled(
    model: Model,
    decode: Decode,
    prompt: Sequence[int],
    rules: Sequence[Rule],
    temperature: float,
    horizon: int,
    seed: int,
    level: float,
    budget: _Budget,
) -> Iterator[Section]:
    """The statistical tests, each at this level."""
    remembers = recalling(model)
    numbers, digits, letters = _ids(model, _NUMBERS, raw=True), regex(_SHORT), regex(_LONG)
    tree = short_tree(remembers, numbers, digits, 1.0, _SHORT_TOKENS, _NODES)
    tests: list[tuple[str, Rule, Decode]] = [("no drafter", "coupled", plain)]
    tests += [(rule, rule, decode) for rule in rules]
    since = time.perf_counter()
    for place, (name, rule, how) in enumerate(tests):
        ask = Ask(rule, 1.0, _SHORT_TOKENS, seed)
        draws = Draws(budget.samples, budget.short(len(tests) - place, since), seed)
        yield check_short(remembers, how, numbers, digits, tree, ask, draws, level, f"chi-square: {name}")
    # Other seeds than those of the outputs that they are compared with.
    draws = Draws(budget.long_samples, _share(budget.until, len(rules) + 1), seed + _OTHER_SEEDS)
    ask = Ask("coupled", temperature, horizon, seed)
    theirs = sample(remembers, plain, prompt, letters, ask, draws)
    for place, rule in enumerate(rules):
        draws = Draws(budget.long_samples, _share(budget.until, len(rules) - place), seed)
        ask = Ask(rule, temperature, horizon, seed)
        mine = sample(remembers, decode, prompt, letters, ask, draws)
        yield check_long(mine, theirs, level, f"n-grams: {rule}")


def _share(until: float, parts: int) -> float:
    """The moment at which the first of so many equal parts of the time left is over."""
    now = time.perf_counter()
    return now + max(0.0, until - now) / parts


def _ids(model: Model, prompt: Prompt, *, raw: bool) -> tuple[int, ...]:
    if raw:
        return tuple(model.vocabulary.encode(cast(str, prompt)))
    return tuple(encode_prompt(prompt, model.tokenizer, chat=None, chat_template_kwargs=None))


def _check_arguments(
    rules: Sequence[Rule],
    temperature: float,
    samples: int,
    long_samples: int,
    minutes: float,
    horizon: int,
    alpha: float,
) -> None:
    checks = (
        (
            "rules",
            rules,
            bool(rules) and set(rules) <= {"coupled", "token", "block"},
            "coupled, token or block",
        ),
        ("temperature", temperature, temperature > 0, "above 0"),
        ("samples", samples, samples >= 1, "1 or more"),
        ("long_samples", long_samples, long_samples >= 1, "1 or more"),
        ("minutes", minutes, minutes >= 0, "0 or more"),
        ("horizon", horizon, horizon >= 1, "1 or more"),
        ("alpha", alpha, 0 < alpha < 1, "between 0 and 1"),
    )
    for name, value, good, wanted in checks:
        if not good:
            raise ArgumentError(f"{name}={value!r}: it must be {wanted}.")
