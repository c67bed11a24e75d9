"""Refinement against its definition: left to right, each slot under its mask."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode

import xpress_struct as xs
from tests.drafting.blocks import PairBias, random_case
from xpress_struct.constraints.matcher import FreeMatcher
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.decoding.acceptance import Accepted, accept_coupled
from xpress_struct.decoding.rows import Rows
from xpress_struct.drafting import refinement
from xpress_struct.drafting.refinement import Plan, refine
from xpress_struct.results import Stats
from xpress_struct.sampling import Noise, NoiseKey, SamplingParams

GREEDY = SamplingParams(0.0)
TOKENS = (b"a", b"b", b"c", b"ab", b"bc", b"")
A, B, C, AB, BC, END = range(6)
SIX = Vocabulary.from_tokens(TOKENS, end_ids=[END])


def block(*favourites: int, width: int = 6) -> torch.Tensor:
    """Logits whose winner at each slot is given; the other ids follow in falling order."""
    base = -torch.arange(width, dtype=torch.float32).repeat(len(favourites), 1)
    base[torch.arange(len(favourites)), list(favourites)] = 5.0
    return base


def greedy(constraint, base, bias=None, kind="parallel", passes=9, **options):
    matcher = FreeMatcher(SIX) if constraint is None else constraint.matcher(SIX)[0]
    plan = Plan(kind, passes, 0.0, options.pop("confidence", 0.0))
    return refine(base, bias, matcher, None, plan, GREEDY, width=6, **options)


@pytest.mark.parametrize("part", range(5))
def test_equals_left_to_right(part):
    """In 1,000 random blocks every kind ends at the draft of the definition, within K passes."""
    seen = Counter()
    for seed in range(200 * part, 200 * part + 200):
        case, wants_q = random_case(seed), seed % 2 == 1
        wanted = case.wanted(wants_q=wants_q)
        for kind in ("sequential", "parallel", "chunked"):
            refined = case.refined(kind, case.slots, wants_q=wants_q)
            assert refined.tokens == wanted, (seed, kind)
            assert refined.passes <= case.slots
        seen["repairs at several slots"] += len(refined.repairs) > 1
        seen["passes"] += refined.passes > 2
        seen["ends early"] += len(wanted) < case.slots
        seen["greedy"] += case.noise is None
        seen["reduced"] += case.draft_ids is not None
        seen["cut"] += case.params.cuts
        matcher = case.matcher.fork()
        for token in wanted:
            seen["forced"] += matcher.forced() == [token]
            matcher.commit([token])
    assert min(seen.values()) > 20, seen
    assert len(seen) == 7


@pytest.mark.parametrize("count", [2, 32])
def test_candidates(count):
    """Candidates of a device lead to the same drafts, given the passes that masking in vain takes."""
    cut = 0
    for seed in range(100):
        case = random_case(seed)
        wanted = case.wanted()
        refined = case.refined("parallel", 3 * case.slots, candidates=count)
        assert refined.tokens == wanted, seed
        assert case.refined("chunked", 3 * case.slots, candidates=count).tokens == wanted, seed
        # A draft of the base logits has no second pass, so it may be cut, and nothing else.
        plain, tried = case.refined("none"), case.refined("none", candidates=count)
        assert plain.tokens[: len(tried.tokens)] == tried.tokens
        cut += len(tried.tokens) < len(plain.tokens)
    assert (cut > 10) == (count == 2)


@pytest.mark.parametrize("kind", ["none", "sequential", "parallel", "low-confidence", "chunked"])
def test_shortlist(kind):
    """With a reported q, tokens are drawn from the legal ones on a short list; a long one loses nothing."""
    checked = 0
    for seed in range(100):
        case = random_case(seed)
        short = case.refined(kind, 2, candidates=2, wants_q=True)
        if short.q is None:
            continue
        path = case.matcher.fork()
        for token, row in zip(short.tokens, short.q, strict=True):
            assert path.legal(token)
            assert row[token] > 0
            assert (row > 0).sum() <= 2
            assert float(row.sum()) == pytest.approx(1.0)
            assert all(path.legal(other) for other in row.nonzero().flatten().tolist())
            path.commit([token])
            checked += 1
        whole, exact = (case.refined(kind, 2, candidates=n, wants_q=True) for n in (64, 1))
        assert whole.tokens == exact.tokens
        assert torch.allclose(whole.q, exact.q, atol=1e-6)
        assert torch.allclose(whole.certainty, exact.certainty, atol=1e-5)
        assert (whole.history, whole.repairs) == (exact.history, exact.repairs)
    assert checked > 100


def test_passes_finish_slot_by_slot():
    """After p passes the first p tokens are final, and R passes give what R + 1 passes had after R."""
    for seed in range(150):
        case = random_case(seed)
        wanted, whole = case.wanted(), case.refined("parallel", case.slots)
        assert len(whole.history) == whole.passes + 1
        assert whole.history[-1] == whole.tokens
        for passes in range(1, whole.passes + 1):
            assert whole.history[passes][:passes] == wanted[:passes]
            assert case.refined("parallel", passes).tokens == whole.history[passes]


def test_base_passes_are_counted():
    """History begins with the base's winners, unmasked; a pass is one call of the bias."""
    case = random_case(4)
    refined = case.refined("parallel", 2)
    winners = case.base if case.noise is None else case.base / case.temperature + case.noise
    assert refined.history[0] == winners.argmax(-1).tolist()
    assert case.bias.calls == refined.passes
    none = case.refined("none")
    assert (none.passes, none.history) == (0, [none.tokens])


@pytest.mark.parametrize("kind", ["none", "sequential", "parallel", "low-confidence", "chunked"])
def test_no_bias(kind):
    """Without a bias every kind walks the base logits."""
    for seed in range(40):
        case = random_case(seed)
        assert case.refined(kind, bias=None).tokens == case.wanted(refined=())


def test_low_confidence():
    """Only slots whose likeliest token by the base logits is unlikely are refined."""
    some = 0
    for seed in range(200):
        case = random_case(seed)
        case.base *= 2
        columns = case.base[:, : case.width]
        shares = (columns.float() / (case.drawn.temperature or 1)).softmax(-1).amax(-1)
        unsure = {slot for slot, share in enumerate(shares) if share < refinement.LOW_CONFIDENCE}
        some += 0 < len(unsure) < case.slots
        refined = case.refined("low-confidence", case.slots)
        assert refined.tokens == case.wanted(refined=unsure), seed
    assert some > 50


def test_matcher_stays():
    """The matcher given is where it was, also behind an end and behind a dead end."""
    for constraint in (None, xs.choice(["abca", "bé"]), xs.regex("[ab]c?")):
        matcher = FreeMatcher(SIX) if constraint is None else constraint.matcher(SIX)[0]
        before = matcher.mask().tolist()
        bias = PairBias(4, 6, 6, torch.Generator().manual_seed(1))
        plan = Plan("parallel", 4, 1.0)
        for seed in range(20):
            noise = Noise(NoiseKey(seed), 6).rows(0, 4)
            args = (block(B, END, C, A), bias, matcher, noise, plan, SamplingParams(1.0))
            refine(*args, width=6, wants_q=True)
            assert matcher.mask().tolist() == before
    matcher.commit([A])


def test_forced_run():
    """What the grammar names is written, known to the drafter or not, and is certain."""
    refined = greedy(xs.regex("abbb|cbbb"), block(C, A, A, A, A))
    assert refined.tokens == [C, B, B, B, END]
    assert refined.repairs == [1, 2, 3, 4]
    assert refined.certainty[0, 1:].tolist() == [1.0] * 4
    assert refined.certainty[1, 1:].tolist() == [0.0] * 4
    known = greedy(xs.regex("abbb|cbbb"), block(A, A, A, width=2), draft_ids=torch.tensor([A, C]))
    assert known.tokens == [A, B, B]


def test_unknown_tokens():
    """A slot where the drafter knows no legal token ends the draft before it; no draft is none."""
    ids = torch.tensor([A, C])
    assert greedy(xs.regex("a[ab]{2}"), block(1, 0, 1, width=2), draft_ids=ids).tokens == [A, A, A]
    assert greedy(xs.regex("[ac][bc]?"), block(1, 1, 1, width=2), draft_ids=ids).tokens == [C, C, END]
    assert greedy(xs.regex("[ac]b[bc]"), block(1, 1, 1, width=2), draft_ids=ids).tokens == [C]
    refined = greedy(xs.regex("[bc]+"), block(0, width=1))
    assert refined.tokens == []
    assert refined.certainty.sum(-1).tolist() == [0.0, 0.0]


def test_wider_logits():
    """Padding ids of the model win nothing."""
    base = block(9, 9, width=10)
    assert greedy(None, base).tokens == [A, A]
    assert greedy(xs.regex("[bc]+"), base).tokens == [B, B]


def test_end():
    """The draft ends behind an end token; what would follow is not looked at."""
    assert greedy(None, block(A, END, B, B)).tokens == [A, END]
    assert greedy(xs.regex("[ab]"), block(B, B, B)).tokens == [B, END]
    without = Vocabulary.from_tokens(TOKENS[:5])
    matcher = xs.regex("[ab]").matcher(without)[0]
    refined = refine(block(B, B, B), None, matcher, None, Plan("none", 0), GREEDY, width=6)
    assert refined.tokens == [B]


@pytest.mark.parametrize("count", [1, 3])
def test_dead_end(count):
    """A dead end ends the draft, and a later pass may lead around it."""

    def repeat(tokens):
        """Behind an `a`, an `a`."""
        rows = torch.zeros(4, 6)
        rows[1:, A] = 9.0 * (tokens[:-1] == A)
        return rows

    constraint = xs.choice(["aaaa", "abé"])
    assert greedy(constraint, block(B, B, B, B), candidates=count).tokens == [A, B]
    refined = greedy(constraint, block(B, B, B, B), repeat, candidates=count)
    assert refined.history[:3] == [[B, B, B, B], [A, B], [A, A, A, A]]
    assert refined.tokens == [A, A, A, A]


def test_confidence():
    """The draft ends before the first slot whose likeliest token is too unlikely, whatever is drawn."""
    base = torch.log(torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.9, 0.1]]))
    for least, length in [(0.0, 3), (0.5, 3), (0.7, 1), (0.95, 0)]:
        refined = greedy(None, base, confidence=least)
        assert len(refined.tokens) == length
        assert refined.certainty.shape == (2, length)
    for seed in range(50):
        noise = Noise(NoiseKey(seed), 6).rows(0, 3)
        for wants_q in (False, True):
            plan = Plan("none", 0, 1.0, 0.7)
            args = (base, None, FreeMatcher(SIX), noise, plan, SamplingParams(1.0))
            refined = refine(*args, width=6, wants_q=wants_q)
            assert len(refined.tokens) == 1
            assert (refined.q is not None) == wants_q


def test_certainty():
    """Confidence and entropy are those of q: behind the mask where q is reported, else without one."""
    base = torch.log(torch.tensor([[0.5, 0.25, 0.25, 1e-30, 1e-30, 1e-30]])).repeat(2, 1)
    args = (base, None, xs.regex("[bc]{2}").matcher(SIX)[0], torch.zeros(2, 6, dtype=torch.float64))
    for wants_q, share, nats in [(False, 0.5, 1.5 * np.log(2)), (True, 0.5, np.log(2))]:
        refined = refine(*args, Plan("none", 0, 1.0), SamplingParams(1.0), width=6, wants_q=wants_q)
        assert refined.certainty[:, 0].tolist() == pytest.approx([share, nats], abs=1e-6)
        assert refined.certainty.sum(-1).tolist() == pytest.approx([2 * share, 2 * nats], abs=1e-6)
        assert refined.certainty.shape == (2, 2)
    hot = refine(*args, Plan("none", 0, 2.0), SamplingParams(1.0), width=6)
    assert hot.certainty[0, 0] == pytest.approx(0.5**0.5 / (0.5**0.5 + 2 * 0.25**0.5), abs=1e-6)


class _Waits(TorchFunctionMode):
    """Counts what would wait for a GPU."""

    NAMES = ("tolist", "item", "cpu", "numpy", "nonzero", "__bool__", "__int__", "__float__", "__index__")

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.count += getattr(func, "__name__", "") in self.NAMES
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", ["none", "sequential", "parallel", "low-confidence", "chunked"])
def test_waits(kind):
    """With candidates, a pass waits for the device once, whatever has to be repaired; so does a report."""
    waited = 0
    for seed in range(60):
        case = random_case(seed)
        case.bias(torch.zeros(case.slots, dtype=torch.int64))
        with _Waits() as waits:
            refined = case.refined(kind, candidates=4)
        assert waits.count == (refined.passes or 1)
        waited += waits.count
        with _Waits() as waits:
            _ = refined.certainty.sum(-1).tolist()
        assert waits.count == 1
    assert waited > 60 or kind == "none"


@pytest.mark.parametrize("temperature", [0.0, 1.1])
def test_draft_of_the_target_itself(temperature):
    """With the target's own logits as base, the coupled rule takes the whole draft."""
    params, stats, longest = SamplingParams(temperature), Stats(), 0
    for seed in range(100):
        base = torch.randn(5, 6, generator=torch.Generator().manual_seed(seed))
        constraint = (
            xs.regex("[abc]{1,6}|c(ab){2}") if seed % 2 else xs.choice(["abcab", "bcab", "bcca", "c"])
        )
        matcher, noise = constraint.matcher(SIX)[0], Noise(NoiseKey(seed), 6)
        rows = None if params.greedy else noise.rows(7, 5)
        draft = refine(base, None, matcher, rows, Plan("none", 0, temperature), params, width=6).tokens
        ends = draft[-1] == END
        target = Rows(base, draft, len(draft), ends, matcher.fork(), params, noise, 7, stats)
        accepted = accept_coupled(draft[: 5 - (not ends)], target.choice)
        assert accepted == Accepted(len(draft) - (not ends), draft[-1])
        longest += len(draft) == 5
    assert longest > 10
