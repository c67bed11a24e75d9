"""Blocks, losses, evaluation and the trainer, on a tiny target."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import pytest
import torch

from tests.training.tiny import SIZES, tiny_model, tiny_prompts
from xpress_struct.api import load
from xpress_struct.drafting.diffusion import DiffusionDrafter
from xpress_struct.errors import ArgumentError, ModelError
from xpress_struct.training.anchors import every_anchor, random_anchors
from xpress_struct.training.blocks import pack
from xpress_struct.training.collect import collect
from xpress_struct.training.drafter import Scored, TrainedDrafter
from xpress_struct.training.evaluation import Evaluation
from xpress_struct.training.features import FeatureCache
from xpress_struct.training.losses import LossSettings, block_loss, distance, slot_weights, targets_of
from xpress_struct.training.prompts import constraint_of
from xpress_struct.training.shards import read_shards
from xpress_struct.training.start import DrafterSizes, draft_vocabulary, new_weights, tap_layers
from xpress_struct.training.train import train
from xpress_struct.training.trainer import Trainer, TrainSettings
from xpress_struct.training.widening import widen

MASK_FREE = LossSettings(rounds=2)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Documents that the tiny target wrote, and their features."""
    model, folder = tiny_model(), tmp_path_factory.mktemp("corpus")
    cache = FeatureCache(model, folder, tap_layers(model.target.num_layers, SIZES.taps))
    collect(model, tiny_prompts(40), folder, documents=30, features=cache)
    return folder, read_shards([folder], model.vocabulary.fingerprint), cache


def drafter(documents, seed: int = 0) -> TrainedDrafter:
    torch.manual_seed(seed)
    model = tiny_model()
    return TrainedDrafter(new_weights(model, documents, SIZES), model.target)


def noisy(documents) -> TrainedDrafter:
    """A drafter whose head says something."""
    made = drafter(documents)
    with torch.no_grad():
        for name, parameter in made.head.named_parameters():
            parameter.normal_(std=0.3)
            assert name
    return made.eval()


def blocks_of(document, features, made, anchors):
    config = made.config
    return pack(document, features, anchors, config.block_size, config.mask_token_id)


def test_anchors_and_known_runs_are_in_range(corpus):
    """A block begins at a token the grammar left open, behind the first; 1 to max_known tokens are known."""
    _, documents, _ = corpus
    rng = random.Random(0)
    known = set()
    for document in documents:
        first = document.forced.index(False)
        for anchor in random_anchors(document, 50, 9, rng):
            assert not document.forced[anchor.place] and anchor.place > first
            assert 1 <= anchor.known <= 9
            assert len(document.prompt) + anchor.place - anchor.known >= 1
            known.add(anchor.known)
    assert known >= set(range(1, 10))


def test_every_anchor_knows_the_forced_run(corpus):
    """The known run of decoding is the last chosen token and all that was forced behind it."""
    _, documents, _ = corpus
    for anchor in every_anchor(documents[0], 32):
        run = documents[0].forced[anchor.place - anchor.known : anchor.place]
        assert run == (False, *[True] * (anchor.known - 1))


def test_packed_blocks_are_scored_as_single_ones(corpus):
    """Base logits and biases of packed blocks equal those of each block alone, behind its own context."""
    _, documents, cache = corpus
    document = next(each for each in documents if len(every_anchor(each, 32)) > 3)
    made, features = noisy(documents), cache.of(document)
    anchors = random_anchors(document, 4, 9, random.Random(1))
    scored = made(blocks := blocks_of(document, features, made, anchors))
    config, text = made.config, [*document.prompt, *document.response]
    for row, anchor in enumerate(anchors):
        first = len(document.prompt) + anchor.place
        start, slots = first - anchor.known, anchor.known + config.block_size - 1
        ids = [*text[start:first], *[config.mask_token_id] * (slots - anchor.known)]
        states = made.backbone.fuse(features.states[:start].float())
        embedded = tiny_model().target.embed(torch.tensor(ids)).clone()
        hidden = made.backbone(states, embedded, start)[anchor.known - 1 :]
        torch.testing.assert_close(
            scored.base[row],
            hidden[1:] @ tiny_model().target.model.lm_head.weight[made.draft_ids].T,
            atol=1e-4,
            rtol=1e-4,
        )
        drafted = blocks.tokens[row]
        prev = torch.tensor([text[first - 2], text[first - 1], *drafted[:-1].tolist()])
        alone = made.head.bias(prev, made.head.prepare(hidden))[1:]
        torch.testing.assert_close(scored.bias(blocks.tokens)[row], alone, atol=1e-4, rtol=1e-4)


def test_distance_equals_a_plain_loop():
    """Cross entropy and total variation to the masked target, token by token."""
    torch.manual_seed(0)
    logits, columns = torch.randn(2, 3, 7), torch.tensor([[[4, 0], [1, 2], [6, 3]]] * 2)
    p = torch.tensor([[[0.75, 0.25], [0.5, 0.3], [1.0, 0.0]]] * 2)
    found = distance(logits, columns, p, 0.1)
    for block in range(2):
        for slot in range(3):
            q = [math.exp(float(x)) for x in logits[block, slot]]
            q = [x / sum(q) for x in q]
            full = [0.0] * 7
            for column, share in zip(columns[block, slot].tolist(), p[block, slot].tolist(), strict=True):
                full[column] += share
            entropy = -sum(a * math.log(b) for a, b in zip(full, q, strict=True))
            variation = 1 - sum(min(a, b) for a, b in zip(full, q, strict=True))
            assert float(found[block, slot]) == pytest.approx(0.1 * entropy + 0.9 * variation, abs=1e-5)


def test_forced_slots_and_slots_behind_the_end_carry_no_weight(corpus):
    """The loss does not change with what the drafter says there, and does with what it says elsewhere."""
    _, documents, cache = corpus
    document = documents[0]
    made, features = noisy(documents), cache.of(document)
    anchors = every_anchor(document, 32)
    blocks = blocks_of(document, features, made, anchors)
    columns = torch.full((made.config.layers.vocab_size,), -1)
    columns[made.draft_ids] = torch.arange(len(made.draft_ids))
    targets = targets_of(features, blocks, columns)
    base = torch.randn(*blocks.tokens.shape, len(made.draft_ids))
    settings = LossSettings(rounds=0)

    def loss(logits):
        return float(
            block_loss(Scored(logits, lambda _: 0 * logits), blocks, *targets, made.draft_ids, settings).total
        )

    noise = torch.randn_like(base)
    assert not blocks.chosen.all() and not blocks.inside.all()
    assert loss(base + noise * ~blocks.chosen[..., None]) == pytest.approx(loss(base), rel=1e-6)
    assert loss(base + noise * blocks.chosen[..., None]) != pytest.approx(loss(base), rel=1e-3)


def test_weights_fall_with_the_chosen_tokens_in_front(corpus):
    """The j-th chosen token of a block counts exp(-j / gamma)."""
    _, documents, cache = corpus
    made = drafter(documents)
    blocks = blocks_of(documents[0], cache.of(documents[0]), made, every_anchor(documents[0], 32))
    for row, chosen in zip(slot_weights(blocks, 4.0), blocks.chosen, strict=True):
        expected = [math.exp(-j / 4) for j in range(int(chosen.sum()))]
        assert row[chosen].tolist() == pytest.approx(expected)


@pytest.mark.parametrize("way", ["base", "sequential"])
def test_rounds_are_those_of_decoding(corpus, way):
    """The counted rounds of held-out documents are the forwards that decoding them takes."""
    _, documents, cache = corpus
    model, made = tiny_model(), noisy(documents)
    greedy = [each for each in documents if each.temperature == 0][:6]
    counted = Evaluation(model, greedy, cache).run(made)["all"][way].rounds
    forwards = 0
    for each in greedy:
        result = model.generate(
            list(each.prompt),
            constraint_of(each.grammar),
            max_new_tokens=400,
            drafter=DiffusionDrafter(made.weights),
            block_length=made.config.offers,
            refine="none" if way == "base" else "sequential",
            guard=False,
        )
        assert result.token_ids == each.response
        forwards += result.stats.forwards
    assert counted == forwards


def test_resumed_training_gives_the_same_weights(corpus, tmp_path):
    """Six steps, and three with three more after a restart, give equal weights and losses."""
    _, documents, cache = corpus
    learned = [each for each in documents if not each.held_out]
    settings = TrainSettings(steps=6, documents=2, anchors=4, loss=MASK_FREE)

    def trainer(name, seed=0):
        return Trainer(drafter(learned, seed), learned, cache, settings, tmp_path / name)

    whole = trainer("whole")
    whole.run()
    first = trainer("parts")
    for _ in range(3):
        first._step()
    first.save()
    second = trainer("parts", seed=1)
    second.resume()
    second.run()
    assert second.progress.step == 6 and second.progress.blocks == whole.progress.blocks
    for (name, mine), theirs in zip(
        second.drafter.state_dict().items(), whole.drafter.state_dict().values(), strict=True
    ):
        assert torch.equal(mine, theirs), name


def test_a_wider_vocabulary_goes_on_where_training_was(corpus, tmp_path):
    """Resumed with more draft tokens, a drafter says the same of those it knew, and trains on."""
    _, documents, cache = corpus
    learned = [each for each in documents if not each.held_out]
    settings = TrainSettings(steps=4, documents=2, anchors=4, loss=MASK_FREE)
    torch.manual_seed(0)
    few = replace(SIZES, draft_vocab_size=0)  # characters of ASCII and the end
    small = TrainedDrafter(new_weights(tiny_model(), learned, few), tiny_model().target)
    first = Trainer(small, learned, cache, settings, tmp_path)
    for _ in range(3):
        first._step()
    first.save()

    came = [replace(learned[0], response=(200, 65, 190, 200, 201, 190, 200))]
    weights = widen(small.weights, came, len(small.draft_ids) + 2)
    large = TrainedDrafter(weights, tiny_model().target)
    assert set(large.draft_ids.tolist()) == {*small.draft_ids.tolist(), 190, 200}
    second = Trainer(large, learned, cache, settings, tmp_path)
    second.resume()
    place = torch.searchsorted(large.draft_ids, small.draft_ids)
    document = learned[0]
    anchors = every_anchor(document, 4)[:5]
    blocks = blocks_of(document, cache.of(document), small, anchors)
    said, says = small.eval()(blocks), large.eval()(blocks)
    assert torch.allclose(said.base, says.base[..., place], atol=1e-5)
    bias = says.bias(blocks.tokens)
    assert torch.allclose(said.bias(blocks.tokens), bias[..., place], atol=1e-5)
    new = torch.ones(len(large.draft_ids), dtype=torch.bool).index_fill(0, place, False)
    assert not bias[..., new].any()
    second.run()
    assert second.progress.step == 4
    assert large(blocks).bias(blocks.tokens)[..., new].any()
    assert widen(weights, came, len(large.draft_ids)) is weights


def test_training_beats_an_untrained_drafter(corpus, tmp_path):
    """After a short training more tokens stand by round on held-out schemas, and the checkpoint drafts."""
    folder, documents, _ = corpus
    model = tiny_model()
    settings = TrainSettings(steps=60, documents=4, anchors=10, learning_rate=8e-3)
    options = {"shards": [folder], "sizes": SIZES, "settings": settings, "features": folder}
    last = train(model, [], tmp_path, **options)
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]

    def per_round(entry):
        counts = entry["held_out"]["all"]["parallel"]
        return counts["chosen"] / counts["rounds"]

    assert last["step"] == 60 and log[-1] == last
    assert per_round(last) > 1.2 * per_round(log[0])
    assert "| parallel |" in (tmp_path / "report.md").read_text()

    drafting = load(model.target.model, tokenizer=model.tokenizer, drafter=str(tmp_path / "drafter"))
    each = next(each for each in documents if each.held_out)
    result = drafting.generate(list(each.prompt), constraint_of(each.grammar), guard=False)
    assert result.token_ids == each.response and result.stats.accepted > 0

    with pytest.raises(ArgumentError, match="holds a training already"):
        train(model, [], tmp_path, **options)
    again = train(model, [], tmp_path, **{**options, "settings": TrainSettings(steps=61)}, resume=True)
    assert again["step"] == 61


def test_several_files_at_each_checkpoint(corpus, tmp_path):
    """Each checkpoint comes in files of the asked size, from which a training resumes; a bad size is refused
    before anything is done."""
    folder, _, _ = corpus
    options = {"shards": [folder], "sizes": SIZES, "features": folder, "max_shard_size": "20KB"}
    settings, found = TrainSettings(steps=2, documents=1, anchors=2), []

    def files():
        found.append({path.name: path.stat().st_size for path in (tmp_path / "drafter").iterdir()})

    for steps in (2, 3):
        train(
            tiny_model(), [], tmp_path, settings=replace(settings, steps=steps), resume=steps > 2, **options
        )
        files()
    assert found[0] == found[1] and len(found[0]) > 4
    assert max(size for name, size in found[0].items() if name.endswith(".safetensors")) < 24_000
    with pytest.raises(ArgumentError, match="max_shard_size='big'"):
        train(tiny_model(), [], tmp_path / "other", shards=[folder], max_shard_size="big")
    assert not (tmp_path / "other").exists()


def test_documents_at_hand_are_not_collected_again(corpus, tmp_path):
    """What is in further shards is not asked again, though the prompts are the same."""
    folder, documents, _ = corpus
    settings = TrainSettings(steps=1, documents=1, anchors=2)
    options = {"shards": [folder], "sizes": SIZES, "settings": settings, "features": folder}
    train(tiny_model(), tiny_prompts(40), tmp_path, documents=3, **options)
    fresh = read_shards([tmp_path / "shards"], tiny_model().vocabulary.fingerprint)
    assert len(fresh) == 3
    assert not {each.key for each in fresh} & {each.key for each in documents}


def test_collecting_stops_in_time(corpus, tmp_path):
    """With no time to collect, training goes on with the documents that are there."""
    folder, _, _ = corpus
    settings = TrainSettings(steps=1, documents=1, anchors=2)
    options = {"shards": [folder], "sizes": SIZES, "settings": settings, "features": folder}
    last = train(tiny_model(), tiny_prompts(20), tmp_path, collect_seconds=0.0, **options)
    assert last["step"] == 1 and not (tmp_path / "shards").exists()


def test_a_state_of_another_drafter_is_refused(corpus, tmp_path):
    """Sizes that do not fit the state are an error of ours."""
    _, documents, cache = corpus
    learned = documents[:4]
    trainer = Trainer(drafter(learned), learned, cache, TrainSettings(steps=1), tmp_path)
    trainer.save()
    other = TrainedDrafter(
        new_weights(tiny_model(), learned, DrafterSizes(block_size=5, rank=4, taps=2)), tiny_model().target
    )
    with pytest.raises(ModelError, match="cannot be resumed"):
        Trainer(other, learned, cache, TrainSettings(steps=1), tmp_path).resume()


def test_layers_start_as_the_targets_own(corpus):
    """The last layers and the final norm are copies of the target's, whose output head serves."""
    _, documents, _ = corpus
    made, target = drafter(documents), tiny_model().target.model
    for mine, theirs in zip(made.backbone.layers, target.model.layers[-SIZES.layers :], strict=True):
        assert torch.equal(mine.mlp.up_proj.weight, theirs.mlp.up_proj.weight)
        assert torch.equal(mine.self_attn.q_proj.weight, theirs.self_attn.q_proj.weight)
        assert (mine.self_attn.q_norm.weight > 0).all() and not (mine.self_attn.q_norm.weight == 1).any()
    assert torch.equal(made.backbone.norm.weight, target.model.norm.weight)
    assert made.lm_head is None


def test_draft_vocabulary_has_what_is_frequent_and_what_is_basic(corpus):
    """Tokens of responses, all bytes of ASCII and the end are in it; it ascends and has the asked size."""
    _, documents, _ = corpus
    model = tiny_model()
    ids = draft_vocabulary(documents, ["\u00fc"], model, 200).tolist()
    assert ids == sorted(set(ids)) and len(ids) == 200
    wanted = {token for document in documents for token in document.response}
    wanted |= {i for i, spelled in enumerate(model.vocabulary.tokens) if spelled in (b"a", b"~", b"\xc3")}
    assert wanted <= {*ids} and {*model.vocabulary.end_ids} <= {*ids}
