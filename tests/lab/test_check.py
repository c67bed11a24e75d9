"""`check` passes what is lossless and fails what is not: biased rules and drafts, the threshold refiner."""

from __future__ import annotations

import json
from unittest.mock import patch

import numpy as np
import pytest
import torch
from scipy import stats

import xpress_struct as xs
from tests.exactness.helpers import LETTERS, PARAMS, PROMPT, SIX, autoregressive, table
from tests.lab.pairs import logits, pair
from tests.stubs import StubTarget, stub_model
from xpress_struct.cli.main import main
from xpress_struct.constraints.matcher import GrammarMatcher
from xpress_struct.decoding.acceptance import Accepted, _ratio
from xpress_struct.errors import ArgumentError
from xpress_struct.lab.check import Ask, LossyThresholdRefiner, check
from xpress_struct.lab.check.decoders import plain, speculative
from xpress_struct.lab.check.equal_ids import Case, check_equal_ids
from xpress_struct.lab.check.recall import RecallingTarget
from xpress_struct.lab.check.soundness import SCHEMAS, check_soundness
from xpress_struct.lab.check.statistics import chi_square, permutation_test
from xpress_struct.lab.check.tree import Tree

PAIR = pair()
SHORT = {"samples": 250, "long_samples": 12, "horizon": 5, "minutes": 5.0, "schemas": {}}


def verdicts(report, kind):
    return {s.name: s.verdict for s in report.sections if s.name.startswith(kind)}


def test_exact_pair_passes():
    """Every test passes on a pair that is lossless, and says how small a fault it would have found."""
    report = check(PAIR, **SHORT | {"schemas": {"list": SCHEMAS["list"]}})
    assert report.verdict == "pass", str(report)
    assert [s.bound for s in report.sections if s.name.startswith("chi")] == pytest.approx(
        [0.2] * 3, abs=0.08
    )
    assert "pass: drafter 'autoregressive'" in str(report)
    assert json.loads(json.dumps(report.as_dict()))["verdict"] == "pass"


def from_p(draft, q, p, coin, draw):
    """Token-level acceptance, but what is refused is redrawn from p instead of max(p - q, 0)."""
    for slot, token in enumerate(draft):
        row = p(slot)
        if coin(slot) >= _ratio(row, q, slot, token):
            return Accepted(slot, draw(row, slot))
    return Accepted(len(draft), draw(p(len(draft)), len(draft)))


def always(draft, q, p, coin, draw):
    """Keeps every draft token that is possible."""
    for slot, token in enumerate(draft):
        if p(slot)[token] == 0:
            return Accepted(slot, draw(p(slot), slot))
    return Accepted(len(draft), draw(p(len(draft)), len(draft)))


@pytest.mark.parametrize(("rule", "biased"), [("token", from_p), ("block", from_p), ("token", always)])
def test_biased_rule_fails(rule, biased):
    """An acceptance rule that redraws from p, or takes what is drafted, fails the chi-square."""
    name = "accept_token_level" if rule == "token" else "accept_block"
    with patch(f"xpress_struct.decoding.loop.{name}", biased):
        report = check(PAIR, rules=(rule,), **SHORT | {"samples": 500, "long_samples": 1})
    assert report.verdict == "fail", str(report)
    assert verdicts(report, "chi-square") == {"chi-square: no drafter": "pass", f"chi-square: {rule}": "fail"}


class CutByDrawn:
    """A drafter that cuts its draft where the token that it drew was unlikely: biased."""

    resumes, name, taps, longest, honours = False, "cuts", (), 8, frozenset()

    def begin(self, context):
        self._inner = PAIR.drafter.begin(context)
        return self

    def propose(self, output, room, matcher, noise, drafted=0):
        draft = self._inner.propose(output, room, matcher, noise, drafted)
        if draft.q is None:
            return draft
        stop = [slot for slot, token in enumerate(draft.tokens) if draft.q[slot][token] < 0.4]
        keep = stop[0] if stop else len(draft.tokens)
        return draft._replace(tokens=draft.tokens[:keep], q=draft.q[:keep] if keep else None)


def test_biased_drafter_fails():
    """Cutting a draft by q of the token that was drawn fails the chi-square."""
    report = check(
        PAIR, drafter=CutByDrawn(), rules=("token",), **SHORT | {"samples": 500, "long_samples": 1}
    )
    assert verdicts(report, "chi-square")["chi-square: token"] == "fail", str(report)


def test_threshold_refiner_fails():
    """The refiner of the blog posts, which says that it is lossy, fails greedily and sampled."""
    refiner = LossyThresholdRefiner(PAIR.drafter, 0.2)
    report = check(PAIR, decode=refiner, rules=("token",), **SHORT)
    assert refiner.lossy and report.verdict == "fail"
    assert verdicts(report, "equal ids") == {"equal ids: token": "fail"}
    assert verdicts(report, "chi-square")["chi-square: token"] == "fail"
    assert "LossyThresholdRefiner" in str(report)


def test_threshold_refiner_is_no_way_of_decoding():
    """No option of generation asks for it."""
    with pytest.raises(xs.XPressError):
        PAIR.generate([1], acceptance="threshold")
    with pytest.raises(ArgumentError, match="drafter"):
        LossyThresholdRefiner(None)


def test_long_outputs_are_compared():
    """A decoder that writes nearly the same whatever the seed fails by its n-grams."""

    def frozen(model, prompt, constraint, ask):
        return plain(
            model, prompt, constraint, Ask("coupled", ask.temperature / 1000, ask.max_new_tokens, ask.seed)
        )

    longer = {"samples": 1, "long_samples": 20, "horizon": 10, "temperature": 2.0}
    report = check(PAIR, decode=frozen, rules=("token",), **SHORT | longer)
    assert verdicts(report, "n-grams") == {"n-grams: token": "fail"}, str(report)


def test_difference_is_told_from_a_tie():
    """Other ids are a fault where the choice was clear, and undecided where two tokens tie."""

    def another(model, prompt, constraint, ask):
        return [9]

    ask = Ask("coupled", 0.0, 1, 0)
    tied = stub_model(lambda prefix: [5.0 if i in (7, 9) else 0.0 for i in range(257)])
    clear = stub_model(lambda prefix: [5.0 if i == 7 else 0.0 for i in range(257)])
    case = [Case((1,), None)]
    assert check_equal_ids(tied, another, case, [ask], "ids").verdict == "inconclusive"
    found = check_equal_ids(clear, another, case, [ask], "ids")
    assert found.verdict == "fail" and "gap 5" in found.detail
    assert check_equal_ids(clear, speculative("lookup"), case, [ask], "ids").verdict == "pass"


def test_unsound_mask_fails():
    """A mask that lets one token more through is found, by the engine or by the text."""
    mask = GrammarMatcher.mask

    def wider(self):
        packed = mask(self)
        packed[ord("x") >> 3] |= 1 << (ord("x") & 7)
        return packed

    asked = {"outputs": 2, "max_new_tokens": 30, "seed": 0}
    schemas = {"either": SCHEMAS["either"]}
    assert check_soundness(PAIR, plain, [1], schemas, **asked)[0].verdict == "pass"
    with patch.object(GrammarMatcher, "mask", wider):
        assert check_soundness(PAIR, plain, [1], schemas, **asked)[0].verdict == "fail"


@pytest.mark.parametrize("nodes", [3, 1000])
def test_tree_is_the_enumerated_distribution(nodes):
    """The outcomes are those of enumeration, merged where the budget ends, and sum to 1."""
    scores, params = table(3), PARAMS["plain"]
    tree = Tree(StubTarget(scores, 6), PROMPT, LETTERS.matcher(SIX)[0], params, 3, nodes)
    wanted = {}
    for output, share in autoregressive(scores, LETTERS, params, 3).items():
        wanted[tree.outcome(output)] = wanted.get(tree.outcome(output), 0.0) + share
    assert sum(tree.outcomes.values()) == pytest.approx(1.0)
    assert tree.outcomes == pytest.approx(wanted, abs=1e-6)
    assert (len(wanted) < 10) == (nodes == 3)


def test_recalled_logits_are_the_targets():
    """A target that remembers gives the target's logits, and asks it once for each row."""
    stub = StubTarget(logits(1), 257)
    target = RecallingTarget(stub)
    for ids in ([1, 2, 3], [1, 2, 4, 5], [1, 2, 3]):
        cache = target.new_cache()
        first = target.score(cache, ids[:2], 1)
        rest = target.score(cache, ids[2:], len(ids) - 2)
        wanted = torch.tensor([logits(1)(tuple(ids[:end])) for end in range(2, len(ids) + 1)])
        assert torch.allclose(torch.cat([first, rest]), wanted)
        cache.rollback_to([2])
        assert torch.equal(target.score(cache, ids[2:], len(ids) - 2), rest)
    assert [ids for ids, _ in stub.seen] == [[1, 2], [3], [4, 5]]


def test_chi_square():
    """The p-value is scipy's, what is impossible is found, and the fault that it promises is found."""
    shares = np.arange(1, 9) / 36
    counts = np.random.default_rng(0).multinomial(800, shares)
    found = chi_square(dict(enumerate(counts)), dict(enumerate(shares)), 1e-3)
    assert found.p_value == pytest.approx(stats.chisquare(counts, shares * 800).pvalue)
    assert chi_square({8: 1}, dict(enumerate(shares)), 1e-3).p_value == 0
    critical = stats.chi2.isf(1e-3, 7)
    power = stats.ncx2.sf(critical, 7, 4 * 800 * found.smallest**2)
    assert power == pytest.approx(0.9, abs=0.02)


def test_permutation_test():
    """Texts drawn alike pass, texts drawn otherwise fail, and a text against itself is no difference."""
    rng = np.random.default_rng(0)
    mine, theirs = rng.integers(0, 4, (12, 8)).tolist(), rng.integers(0, 4, (12, 8)).tolist()
    other = rng.integers(1, 5, (12, 8)).tolist()
    assert permutation_test(mine, theirs, 1e-3).p_value > 0.01
    found = permutation_test(mine, other, 1e-3)
    assert found.p_value < 1e-3 and found.distance > found.critical
    assert permutation_test(mine, mine, 1e-3).p_value == 1


@pytest.mark.parametrize("wrong", [{"rules": ("best",)}, {"alpha": 0}, {"temperature": 0}, {"drafter": None}])
def test_arguments_are_checked(wrong):
    """What cannot be checked is an error."""
    with pytest.raises(ArgumentError):
        check(PAIR, **wrong)


def test_command(monkeypatch, capsys, tmp_path):
    """The command prints the sections, ends with a RESULT line, and its exit code is the verdict."""
    monkeypatch.setattr("xpress_struct.api.load", lambda model, *, drafter: PAIR)
    out = tmp_path / "found.json"
    few = ["check", "--samples", "60", "--long-samples", "9", "--rules", "token", "--json", str(out)]
    main(few)
    lines = capsys.readouterr().out.splitlines()
    assert json.loads(lines[-1].removeprefix("RESULT "))["verdict"] == json.loads(out.read_text())["verdict"]
    assert main([*few, "--lossy-threshold", "0.2"]) == 1
    assert "fail" in capsys.readouterr().out


@pytest.mark.model
@pytest.mark.slow
def test_embedded_pair():
    """The embedded model with the lookup drafter passes a small check."""
    model = xs.load(drafter="lookup")
    few = {"horizon": 4, "samples": 300, "long_samples": 1, "minutes": 0.2, "schemas": {}}
    report = check(model, rules=("coupled", "token"), **few)
    assert report.verdict != "fail", str(report)
    assert verdicts(report, "equal ids") == {"equal ids: coupled": "pass", "equal ids: token": "pass"}
