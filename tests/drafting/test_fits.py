"""Whether a drafter fits its target: each misfit is said in words, a fitting one passes."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import SimpleNamespace

import pytest
from transformers import LlamaConfig, LlamaForCausalLM

from tests.drafting.tiny import FULL, D, V, diffusion_config, head_config
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.drafting.checkpoints.fits import PromptMismatchWarning, check_fits, template_fingerprint
from xpress_struct.drafting.checkpoints.published import PUBLISHED, cached_for
from xpress_struct.drafting.config import TrainedOn
from xpress_struct.errors import DrafterMismatchError
from xpress_struct.target.target import TransformersTarget

TOKENS = [bytes([65 + i]) for i in range(V - 1)] + [b""]
VOCABULARY = Vocabulary.from_tokens(TOKENS, end_ids=[V - 1])
TEMPLATE = "{{ messages }}{% if enable_thinking %}<think>{% endif %}"
TOKENIZER = SimpleNamespace(chat_template=TEMPLATE)
STATED = TrainedOn("some/target", 5, V, VOCABULARY.fingerprint, template_fingerprint(TOKENIZER), False)


@pytest.fixture(scope="module")
def target():
    sizes = {"hidden_size": D, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 5}
    return TransformersTarget(LlamaForCausalLM(LlamaConfig(vocab_size=V, pad_token_id=None, **sizes)))


def fitting(**changed):
    return diffusion_config(FULL, **{"taps": (0, 3), "trained_on": STATED, **changed})


def test_fits(target):
    """A drafter that states what is true of the target passes, whatever its head and vocabulary."""
    for config in (
        fitting(),
        fitting(trained_on=TrainedOn()),
        fitting(head=head_config("xpress")),
        fitting(head=head_config("gated"), draft_vocab_size=20),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert check_fits(config, target, VOCABULARY, TOKENIZER) is None


def test_no_head_needs_no_vocab_size(target):
    """Without a head and a reduced vocabulary, the vocabulary size of the layers' config means nothing."""
    assert check_fits(fitting(layers={"vocab_size": 7}), target, VOCABULARY) is None


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"layers": {"hidden_size": 64}}, "hidden size is 64, the target's 32"),
        ({"taps": (1, 5)}, "reads layer 5 of the target, whose layers are 0 to 4"),
        ({"taps": (1, 4)}, r"reads the target's last layer \(4\), .* after the target's final norm"),
        ({"mask_token_id": V}, "mask token is 50, the target's embedding has 50 rows"),
        ({"mask_token_id": -1}, "mask token is -1"),
        ({"trained_on": replace(STATED, num_target_layers=6)}, "of 6 layers, this one has 5"),
        ({"trained_on": replace(STATED, target_vocab_size=51)}, "logits for 51 ids, this one has 50"),
        ({"trained_on": replace(STATED, vocabulary="0" * 64)}, "other tokens .fingerprint 000000000000"),
        ({"draft_vocab_size": 51}, "drafts from 51 ids, the target has 50"),
        (
            {"layers": {"vocab_size": 51}, "draft_vocab_size": 20},
            "tables are made for 51 ids, the target has 50",
        ),
        ({"layers": {"vocab_size": 51}, "head": head_config("xpress")}, "tables are made for 51 ids"),
    ],
)
def test_misfits(changed, match, target):
    """What does not fit is said, with the drafter's fact and the target's."""
    with pytest.raises(DrafterMismatchError, match=match):
        check_fits(fitting(**changed), target, VOCABULARY, TOKENIZER)


def test_mask_token_among_padding_rows(target):
    """A mask token that the tokenizer does not have, but the target's embedding has, fits."""
    shorter = Vocabulary.from_tokens(TOKENS[:40], width=V)
    config = fitting(mask_token_id=45, trained_on=TrainedOn())
    assert check_fits(config, target, shorter) is None


@pytest.mark.parametrize(
    ("trained_on", "match"),
    [
        (replace(STATED, template="0" * 64), "prompts with another chat template: fewer"),
        (replace(STATED, enable_thinking=True), "enable_thinking=True, which is False here"),
        (replace(STATED, template="0", enable_thinking=True), "another chat template and enable_thinking"),
    ],
)
def test_other_prompts(trained_on, match, target):
    """B51: other prompts than those trained on cost acceptance, so they are warned of; nothing is refused."""
    config = fitting(trained_on=trained_on)
    with pytest.warns(PromptMismatchWarning, match=match):
        check_fits(config, target, VOCABULARY, TOKENIZER)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_fits(config, target, VOCABULARY) is None


def test_thinking_that_no_template_knows(target):
    """enable_thinking is not compared where the template does not know it."""
    plain = SimpleNamespace(chat_template="{{ messages }}")
    stated = replace(STATED, template=template_fingerprint(plain), enable_thinking=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_fits(fitting(trained_on=stated), target, VOCABULARY, plain) is None


def test_template_fingerprint():
    """Templates differ by their fingerprint; no template has none."""
    assert template_fingerprint(SimpleNamespace(chat_template=None)) is None
    assert template_fingerprint(TOKENIZER) != template_fingerprint(SimpleNamespace(chat_template="x"))


def test_fingerprint_of_a_vocabulary():
    """It is the same for the same tokens and ends; other tokens, cuts between them or ends change it."""
    made = [
        Vocabulary.from_tokens([b"a", b"bc", b"<"], end_ids=[2]),
        Vocabulary.from_tokens([b"ab", b"c", b"<"], end_ids=[2]),
        Vocabulary.from_tokens([b"a", b"bc", b">"], end_ids=[2]),
        Vocabulary.from_tokens([b"a", b"bc", b"<"], end_ids=[1]),
        Vocabulary.from_tokens([b"a", b"bc", b"<"]),
    ]
    assert len({vocabulary.fingerprint for vocabulary in made}) == 5
    again = Vocabulary.from_tokens([b"a", b"bc", b"<"], end_ids=[2], width=8)
    assert again.fingerprint == made[0].fingerprint


def test_cached_drafters(tmp_path, monkeypatch):
    """Of a target's published drafters the first one whose config and weights are both cached is taken."""
    better, other = PUBLISHED["Qwen/Qwen3-8B"][:2]
    held = {(better, "config.json"), (other, "config.json"), (other, "model.safetensors")}
    monkeypatch.setattr(
        "huggingface_hub.try_to_load_from_cache",
        lambda repo, name: str(tmp_path / name) if (repo, name) in held else None,
    )
    assert cached_for("Qwen/Qwen3-8B") == other
    held.add((better, "model.safetensors.index.json"))
    assert cached_for("Qwen/Qwen3-8B") == better
    assert cached_for("Qwen/Qwen3-4B") is None
    assert cached_for("some/target") is None
