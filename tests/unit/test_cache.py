"""The target's cache: what is rolled back leaves no trace, or is refused by name (B54)."""

from __future__ import annotations

import pytest
import torch
from transformers import StaticCache

import xpress_struct as xs
from tests.stubs import ScriptedDrafter
from tests.unit.models import WIDTH, tiny, tiny_model
from xpress_struct.errors import CacheRollbackError
from xpress_struct.target.cache import TargetCache
from xpress_struct.target.target import TransformersTarget

EXACT = ["llama", "gpt2", "gemma3", "mistral"]
RECURRENT = ["mamba", "qwen3_5", "falcon_h1"]
IDS = torch.randint(0, 256, (64,), generator=torch.Generator().manual_seed(1)).tolist()
WRONG = [7] * 8


@torch.inference_mode()
def recomputed(name, ids, rows=1):
    return tiny(name)(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -rows:]


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("prompt", [1, 5, 7, 8, 9, 20])
@pytest.mark.parametrize("draft", [1, 2, 5, 8])
def test_rollback_is_exact(draft, prompt, name):
    """After each of 40 tokens, refused drafts leave logits as recomputed from nothing."""
    target = TransformersTarget(tiny(name))
    assert target.no_speculation is None
    cache = target.new_cache()
    target.score(cache, IDS[:prompt], 1)
    cache.rollback_to([prompt])
    length = prompt
    while length < prompt + 40:
        stands = length % (draft + 1)
        block = [*IDS[length : length + stands], *WRONG[: draft - stands]]
        rows = target.score(cache, [*IDS[length : length + 1], *block], draft + 1)
        assert cache.lengths == [length + 1 + draft]
        # IDS[length] is the pending token; the block guesses what follows it.
        sent = [*IDS[: length + 1], *block]
        torch.testing.assert_close(rows, recomputed(name, sent, draft + 1), atol=1e-5, rtol=1e-5)
        cache.rollback_to([length + 1])
        length += 1


@pytest.mark.parametrize("name", EXACT)
def test_rollback_to_nothing(name):
    """A cache can be rolled back to its start, within what one forward added."""
    target = TransformersTarget(tiny(name))
    cache = target.new_cache()
    target.score(cache, IDS[:6], 1)
    cache.rollback_to([0])
    found = target.score(cache, IDS[10:15], 1)
    torch.testing.assert_close(found, recomputed(name, IDS[10:15]), atol=1e-5, rtol=1e-5)


def test_bad_rollbacks():
    """A cache does not go forward, nor leave its rows ragged."""
    target = TransformersTarget(tiny("llama"))
    cache = target.new_cache()
    target.score(cache, IDS[:4], 1)
    with pytest.raises(CacheRollbackError, match="only"):
        cache.rollback_to([5])
    cache.lengths = [4, 4]
    with pytest.raises(CacheRollbackError, match="same count"):
        cache.rollback_to([4, 3])


@pytest.mark.parametrize("name", EXACT)
def test_gather(name):
    """Rows are kept by index, in any order and more than once."""
    model, target = tiny(name), TransformersTarget(tiny(name))
    cache = target.new_cache()
    cache.lengths = [0, 0, 0]
    batch = torch.tensor([IDS[:12], IDS[12:24], IDS[24:36]])
    with torch.inference_mode():
        model(input_ids=batch, **{target._cache_name: cache.cache}, use_cache=True)
        cache.extend(12)
        cache.rollback_to([11] * 3)
        cache.gather([2, 0, 2])
        assert cache.lengths == [11] * 3
        following = torch.tensor([[3], [4], [5]])
        found = model(input_ids=following, **{target._cache_name: cache.cache}, use_cache=True).logits
    for row, (source, token) in enumerate(((2, 3), (0, 4), (2, 5))):
        wanted = recomputed(name, [*batch[source, :11].tolist(), token])
        torch.testing.assert_close(found[row], wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_is_refused(name):
    """A recurrent state cannot go back: speculation is off, says why, and nothing is lost."""
    model = tiny_model(name)
    reason = model.target.no_speculation
    assert reason
    drafter = ScriptedDrafter(lambda output: [97] * 4)
    constraint = xs.regex("[a-f]{20}")
    plain = model.generate(IDS[:9], constraint, drafter=None, seed=3, temperature=1.0)
    drafted = model.generate(IDS[:9], constraint, drafter=drafter, seed=3, temperature=1.0)
    assert drafted.token_ids == plain.token_ids
    assert drafted.stats.no_speculation == reason
    assert drafted.stats.proposed == 0
    assert drafted.value


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_scores_are_right(name):
    """Logits of a recurrent model over a cache are those recomputed from nothing."""
    target = TransformersTarget(tiny(name))
    cache = target.new_cache()
    target.score(cache, IDS[:9], 1)
    found = target.score(cache, IDS[9:12], 2)
    torch.testing.assert_close(found, recomputed(name, IDS[:12], 2), atol=1e-4, rtol=1e-4)
    with pytest.raises(CacheRollbackError):
        cache.rollback_to([11])


@pytest.mark.parametrize("name", EXACT)
def test_static_cache(name):
    """A static cache is rolled back exactly, or refused (B54)."""
    model = tiny(name)
    static = StaticCache(config=model.config, max_cache_len=64)
    try:
        cache = TargetCache(static)
    except CacheRollbackError:
        return
    with torch.inference_mode():
        model(input_ids=torch.tensor([IDS[:20]]), **{TransformersTarget(model)._cache_name: static})
        cache.extend(20)
        cache.rollback_to([20])
        model(input_ids=torch.tensor([WRONG[:5]]), **{TransformersTarget(model)._cache_name: static})
        cache.extend(5)
        try:
            cache.rollback_to([20])
        except CacheRollbackError:
            return
        found = model(
            input_ids=torch.tensor([IDS[20:22]]), **{TransformersTarget(model)._cache_name: static}
        ).logits[0, -1:]
    torch.testing.assert_close(found, recomputed(name, IDS[:22]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logprobs(temperature, name):
    """Log-probabilities are those of the masked target at each step, with and without drafts (B55)."""
    model, constraint = tiny_model(name), xs.regex("[a-h]{3}-(xyz|[0-9]{4})")
    options = {"seed": 4, "temperature": temperature, "logprobs": 3}
    plain = model.generate(IDS[:5], constraint, drafter=None, **options)
    guess = list(plain.token_ids)
    drafter = ScriptedDrafter(lambda output: [*guess[len(output) :][:2], 98])
    drafted = model.generate(IDS[:5], constraint, drafter=drafter, **options)
    assert drafted.token_ids == plain.token_ids
    assert drafted.stats.accepted > 0
    matcher, _ = constraint.matcher(model.vocabulary)
    steps = zip(plain.token_ids, plain.logprobs, drafted.logprobs, strict=True)
    for step, (token, *both) in enumerate(steps):
        row = recomputed(name, [*IDS[:5], *plain.token_ids[:step]])[0]
        legal = torch.tensor([matcher.legal(i) for i in range(WIDTH)])
        wanted = row.masked_fill(~legal, -torch.inf).log_softmax(-1)
        for found in both:
            assert found.token_id == token
            assert found.logprob == pytest.approx(float(wanted[token]), abs=1e-4)
            for other, score in found.top:
                assert score == pytest.approx(float(wanted[other]), abs=1e-4)
        matcher.commit([token])
