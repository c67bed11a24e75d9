"""Checkpoints against speculators 0.9: what it saves is read here, what is written for it loads there."""

from __future__ import annotations

import pytest
import torch

from tests.drafting.forms import tiny_weights
from tests.drafting.tiny import FULL, SLIDING, D, V
from xpress_struct.drafting.checkpoints import read_checkpoint, write_checkpoint
from xpress_struct.drafting.checkpoints.layers import layer_fields

pytestmark = pytest.mark.parity

KINDS = [None, "xpress", "vanilla", "gated", "rnn"]
IDS = 2 * torch.arange(20)


def theirs(kind, reduced, sample_from_anchor):
    """A random drafter of speculators', with a window of 6 in its first layer."""
    from speculators.config import SpeculatorsConfig, VerifierConfig
    from speculators.models.dflash import DFlashDraftModel, DFlashSpeculatorConfig
    from speculators.models.dspark import DSparkDraftModel, DSparkSpeculatorConfig
    from speculators.models.xpress import XPressDraftModel, XPressSpeculatorConfig
    from speculators.proposals.greedy import GreedyTokenProposalConfig

    model_of, config_of, name, more = {
        None: (DFlashDraftModel, DFlashSpeculatorConfig, "dflash", {}),
        "xpress": (
            XPressDraftModel,
            XPressSpeculatorConfig,
            "xpress",
            {"xpress_rank": 6, "xpress_mlp_ratio": 2, "num_jacobi_passes": 4},
        ),
    }.get(
        kind,
        (
            DSparkDraftModel,
            DSparkSpeculatorConfig,
            "dspark",
            {"markov_rank": 6, "markov_head_type": kind},
        ),
    )
    layers = tiny_weights(SLIDING, FULL, window=6).config.layers
    layers._attn_implementation = "eager"
    torch.manual_seed(0)
    model = model_of(
        config_of(
            transformer_layer_config=layers,
            draft_vocab_size=20 if reduced else V,
            block_size=8,
            aux_hidden_state_layer_ids=[2, 4],
            mask_token_id=V - 1,
            sample_from_anchor=sample_from_anchor,
            speculators_config=SpeculatorsConfig(
                algorithm=name,
                proposal_methods=[GreedyTokenProposalConfig(speculative_tokens=7)],
                default_proposal_method="greedy",
                verifier=VerifierConfig(name_or_path="some/target", architectures=[]),
            ),
            **more,
        )
    )
    if reduced:
        is_drafted = torch.zeros(V, dtype=torch.bool)
        is_drafted[IDS] = True
        model.load_vocab_mappings(is_drafted, IDS - torch.arange(20))
        torch.nn.init.normal_(model.lm_head.weight)
    return model


def by_our_names(state, reduced):
    """Their state dict without what the target lends."""
    lent = (
        "embed_tokens.",
        "verifier_",
        "confidence_head.",
        "t2d",
        "d2t",
        *(() if reduced else ("lm_head.",)),
    )
    return {key: value for key, value in state.items() if not key.startswith(lent)}


def our_tensors(weights):
    prefix = (
        "refiner_head." if weights.config.head and weights.config.head.kind == "xpress" else "markov_head."
    )
    tensors = dict(weights.backbone.state_dict())
    if weights.head is not None:
        tensors |= {prefix + key: value for key, value in weights.head.state_dict().items()}
    if weights.lm_head is not None:
        tensors["lm_head.weight"] = weights.lm_head
    return tensors


def assert_equal(mine, theirs):
    assert mine.keys() == theirs.keys()
    for key, value in mine.items():
        assert torch.equal(value, theirs[key].to(value.dtype)), key


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("sample_from_anchor", [False, True])
def test_saved_by_speculators(kind, reduced, sample_from_anchor, tmp_path):
    """What speculators saves is read with equal weights, layers, taps, ids and conventions."""
    model = theirs(kind, reduced, sample_from_anchor)
    model.save_pretrained(tmp_path)
    read = read_checkpoint(tmp_path)
    config = read.config
    assert_equal(our_tensors(read), by_our_names(model.state_dict(), reduced))
    assert layer_fields(config.layers) == layer_fields(model.config.transformer_layer_config)
    assert (config.taps, config.block_size, config.mask_token_id) == ((1, 3), 8, V - 1)
    assert config.predicts_next == sample_from_anchor
    assert config.sliding_is_causal and not config.full_is_causal
    assert config.trained_on.target == "some/target"
    assert (config.head and config.head.kind) == kind
    assert not reduced or torch.equal(read.draft_ids, IDS)
    if kind == "xpress":
        assert config.head.passes == 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reduced", [False, True])
def test_written_for_speculators(kind, reduced, tmp_path):
    """What is written in its format loads there by the class it names, with an equal state dict."""
    from speculators import SpeculatorModel

    weights = tiny_weights(
        SLIDING,
        FULL,
        window=6,
        kind=kind,
        draft_vocab_size=20 if reduced else None,
        predicts_next=True,
        sliding_is_causal=False,
        max_known=16,
    )
    write_checkpoint(weights, tmp_path, format="speculators")
    model = SpeculatorModel.from_pretrained(str(tmp_path))
    assert_equal(our_tensors(weights), by_our_names(model.state_dict(), reduced))
    assert layer_fields(model.config.transformer_layer_config) == layer_fields(weights.config.layers)
    assert model.target_layer_ids == [2, 4]
    assert (model.block_size, model.mask_token_id) == (8, V - 1)
    assert model.config.sample_from_anchor and model.config.sliding_window_non_causal
    assert model.config.speculators_config.proposal_methods[0].speculative_tokens == 8
    if reduced:
        assert torch.equal(torch.arange(20) + model.d2t, IDS)
        assert torch.equal(model.t2d.nonzero()[:, 0], IDS)


def test_target_by_name(tmp_path):
    """speculators takes the target's tables from the name that was written."""
    from speculators import SpeculatorModel
    from transformers import Qwen3Config, Qwen3ForCausalLM

    sizes = {"hidden_size": D, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 5}
    target = Qwen3ForCausalLM(Qwen3Config(vocab_size=V, head_dim=16, num_key_value_heads=1, **sizes))
    target.save_pretrained(tmp_path / "target")
    write_checkpoint(
        tiny_weights(kind="xpress"),
        tmp_path / "drafter",
        format="speculators",
        target_name=str(tmp_path / "target"),
    )
    model = SpeculatorModel.from_pretrained(str(tmp_path / "drafter"))
    assert torch.equal(model.embed_tokens.weight, target.get_input_embeddings().weight)
    assert torch.equal(model.lm_head.weight, target.get_output_embeddings().weight)
