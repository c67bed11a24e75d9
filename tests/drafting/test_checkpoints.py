"""Checkpoints of drafters: every published form is read, ours goes there and back, misfits are named."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.drafting.forms import FORMS, deep_spec, fused, serving, speculators, tiny_weights, write, z_lab
from tests.drafting.tiny import FULL, SLIDING, D, V
from xpress_struct.drafting.checkpoints import files as checkpoint_files
from xpress_struct.drafting.checkpoints import read_checkpoint, write_checkpoint
from xpress_struct.drafting.checkpoints.layers import layer_fields
from xpress_struct.drafting.config import HeadConfig, TrainedOn
from xpress_struct.errors import ArgumentError, DrafterMismatchError, ModelError, UnsupportedFeatureError

STATED = TrainedOn(num_target_layers=6, target_vocab_size=V)
NAMED = TrainedOn(target="some/target", target_vocab_size=V)


def facts(config):
    plain = {field.name: getattr(config, field.name) for field in fields(config)}
    return plain | {"layers": layer_fields(config.layers)}


def assert_same(read, expected, **changed):
    assert facts(read.config) == facts(replace(expected.config, **changed))
    for mine, theirs in ((read.backbone, expected.backbone), (read.head, expected.head)):
        mine, theirs = (module.state_dict() if module else {} for module in (mine, theirs))
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[key], theirs[key]) for key in mine)
    for name in ("draft_ids", "lm_head"):
        mine, theirs = getattr(read, name), getattr(expected, name)
        assert (mine is None) == (theirs is None)
        assert mine is None or torch.equal(mine, theirs)


@pytest.mark.parametrize("form", ["z_lab", "z_lab_inner", "z_lab_flat", "deep_spec", "speculators"])
def test_plain_forms(form, tmp_path):
    """A drafter without a head is the same from every form, but for what the form states besides."""
    weights = tiny_weights()
    trained_on = NAMED if form == "speculators" else STATED
    read = read_checkpoint(write(tmp_path, FORMS[form](weights)))
    assert_same(read, weights, trained_on=trained_on, predicts_next=form == "deep_spec")


def test_read_weights_run(tmp_path):
    """A backbone that was read computes what the one that was written does."""
    weights = tiny_weights()
    read = read_checkpoint(write(tmp_path, z_lab(weights)))
    features, block = torch.randn(5, D), torch.randn(8, D)
    with torch.no_grad():
        expected = weights.backbone(features, block, 5)
        assert torch.equal(read.backbone(features, block, 5), expected)
    assert not read.backbone.training


@pytest.mark.parametrize("form", ["serving", "speculators"])
def test_xpress_forms(form, tmp_path):
    """An xPress head is the same from its serving form and from speculators."""
    weights = tiny_weights(kind="xpress")
    trained_on = NAMED if form == "speculators" else STATED
    assert_same(read_checkpoint(write(tmp_path, FORMS[form](weights))), weights, trained_on=trained_on)


@pytest.mark.parametrize("kind", ["vanilla", "gated", "rnn"])
@pytest.mark.parametrize("form", [deep_spec, speculators])
def test_markov_forms(kind, form, tmp_path):
    """A Markov head of each kind is the same from DeepSpec and from speculators."""
    weights = tiny_weights(kind=kind, predicts_next=True)
    trained_on = NAMED if form is speculators else STATED
    assert_same(read_checkpoint(write(tmp_path, form(weights))), weights, trained_on=trained_on)


@pytest.mark.parametrize("kind", [None, "xpress", "vanilla"])
def test_reduced_vocabulary(kind, tmp_path):
    """speculators' offsets become the target's ids, and the output head of the reduced vocabulary is kept."""
    weights = tiny_weights(kind=kind, draft_vocab_size=20)
    read = read_checkpoint(write(tmp_path, speculators(weights)))
    assert_same(read, weights, trained_on=NAMED)
    assert read.draft_ids.tolist() == list(range(0, 40, 2))


def test_fused_projections(tmp_path):
    """Fused projections are split, further columns of fc cut, and a warning counts what is left out."""
    weights = tiny_weights()
    folder = write(tmp_path, fused(weights))
    with pytest.warns(UserWarning, match="3 tensors of the drafter have no place"):
        read = read_checkpoint(folder)
    assert_same(read, weights, trained_on=STATED)


def test_fused_twice(tmp_path):
    """Fused and separate projections side by side are refused by name."""
    content, tensors = fused(tiny_weights())
    tensors["layers.0.self_attn.q_proj.weight"] = torch.ones(1)
    with pytest.raises(DrafterMismatchError, match=r"both layers.0.self_attn.qkv_proj.weight and .*q_proj"):
        read_checkpoint(write(tmp_path, (content, tensors)))


def test_default_taps(tmp_path):
    """Without target_layer_ids taps are z-lab's: evenly from layer 1 to the third last; one in the middle."""
    for types, depth, taps in (((FULL,) * 5, 36, (1, 9, 17, 25, 33)), ((FULL,), 7, (3,))):
        content, tensors = z_lab(tiny_weights(*types, taps=taps))
        del content["dflash_config"]["target_layer_ids"]
        content["num_target_layers"] = depth
        read = read_checkpoint(write(tmp_path / str(depth), (content, tensors)))
        assert read.config.taps == taps


def test_inner_field_first(tmp_path):
    """A field inside dflash_config counts before the same one at the top."""
    content, tensors = z_lab(tiny_weights())
    content["dflash_config"]["block_size"] = 5
    content["mask_token_id"] = 3
    config = read_checkpoint(write(tmp_path, (content, tensors))).config
    assert (config.block_size, config.mask_token_id) == (5, V - 1)


@pytest.mark.parametrize(
    ("causal", "sliding", "full"), [(None, True, False), (True, True, True), (False,) * 3]
)
def test_variants(causal, sliding, full, tmp_path):
    """is_causal, sliding layers, the scales and the softcap are read as z-lab's code reads them."""
    weights = tiny_weights(SLIDING, FULL, window=6)
    content, tensors = z_lab(weights)
    content["is_causal"] = causal
    content["dflash_config"] |= {"input_embedding_scale": 2.5, "final_logit_softcapping": 30.0}
    content["output_multiplier"] = 0.5
    read = read_checkpoint(write(tmp_path, (content, tensors)))
    assert_same(
        read,
        weights,
        sliding_is_causal=sliding,
        full_is_causal=full,
        embedding_scale=2.5,
        logit_softcap=30.0,
        output_multiplier=0.5,
        trained_on=STATED,
    )
    assert read.config.layers.sliding_window == 6


def test_speculators_sliding(tmp_path):
    """speculators' sliding layers are causal unless it says otherwise, or they have no window."""
    for window, non_causal, causal in ((6, False, True), (6, True, False), (None, False, False)):
        content, tensors = speculators(tiny_weights(SLIDING, FULL, window=window))
        content["sliding_window_non_causal"] = non_causal
        read = read_checkpoint(write(tmp_path / f"{window}{non_causal}", (content, tensors)))
        assert read.config.sliding_is_causal is causal
        assert not read.config.full_is_causal


def test_speculators_foreign_layers(tmp_path):
    """Fields that a nested config of another model leaves out have that model's defaults."""
    content, tensors = speculators(tiny_weights())
    nested = content["transformer_layer_config"]
    content["transformer_layer_config"] = {
        name: nested[name]
        for name in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "head_dim")
    } | {"model_type": "llama", "num_attention_heads": 2, "rope_theta": 500.0}
    tensors = {key: value for key, value in tensors.items() if "layers." not in key}
    tensors |= {
        key: value
        for key, value in tiny_weights(layers={"num_attention_heads": 2}).backbone.state_dict().items()
        if "layers." in key
    }
    layers = read_checkpoint(write(tmp_path, (content, tensors))).config.layers
    assert layers.num_key_value_heads == 2  # llama: as many as heads; Qwen3: 32
    assert layers.rope_parameters["rope_theta"] == 500.0


def test_mask_token_by_text(tmp_path):
    """A mask token that is named by its text is looked up in the tokenizer, and asked for without one."""

    class Tokenizer:
        def get_vocab(self):
            return {"<mask>": 42}

    content, tensors = z_lab(tiny_weights())
    del content["dflash_config"]["mask_token_id"]
    content["dflash_config"]["mask_token"] = "<mask>"
    folder = write(tmp_path, (content, tensors))
    assert read_checkpoint(folder, tokenizer=Tokenizer()).config.mask_token_id == 42
    with pytest.raises(ModelError, match=r"'<mask>'. Pass the target's tokenizer"):
        read_checkpoint(folder)
    content["dflash_config"]["mask_token"] = "<blank>"
    with pytest.raises(ModelError, match="'<blank>' is not a token"):
        read_checkpoint(write(tmp_path, (content, tensors)), tokenizer=Tokenizer())


@pytest.mark.parametrize(
    ("kind", "reduced", "more"),
    [
        (
            None,
            None,
            {"max_known": 32, "embedding_scale": 2.0, "output_multiplier": 0.5, "logit_softcap": 9.0},
        ),
        ("xpress", None, {"full_is_causal": True, "sliding_is_causal": False, "predicts_next": True}),
        ("gated", 20, {"trained_on": TrainedOn("a/b", 6, V, "12ab", "34cd", True)}),
    ],
)
def test_own_format(kind, reduced, more, tmp_path):
    """Our format gives back every field and every weight."""
    weights = tiny_weights(SLIDING, FULL, window=6, kind=kind, draft_vocab_size=reduced, **more)
    write_checkpoint(weights, tmp_path / "new" / "folder")
    assert_same(read_checkpoint(str(tmp_path / "new" / "folder")), weights)


def test_reduced_vocabulary_of_the_targets_head(tmp_path):
    """A reduced vocabulary may go without an output head of its own."""
    weights = tiny_weights(draft_vocab_size=20)
    weights.lm_head = None
    write_checkpoint(weights, tmp_path)
    assert_same(read_checkpoint(tmp_path), weights)


@pytest.mark.parametrize("kind", [None, "xpress", "vanilla", "gated", "rnn"])
@pytest.mark.parametrize("reduced", [None, 20])
def test_written_for_speculators(kind, reduced, tmp_path):
    """What is written in speculators' format is read back the same, but for max_known and trained_on."""
    weights = tiny_weights(
        SLIDING, FULL, window=6, kind=kind, draft_vocab_size=reduced, max_known=32, sliding_is_causal=False
    )
    write_checkpoint(weights, tmp_path, format="speculators", target_name="some/target")
    assert_same(read_checkpoint(tmp_path), weights, max_known=1, trained_on=NAMED)


@pytest.mark.parametrize("format", ["xpress_struct", "speculators"])
def test_several_files(format, tmp_path):
    """No file holds more than was asked but a tensor that is larger; nothing of an earlier save is left."""
    weights = tiny_weights(kind="xpress", draft_vocab_size=20)
    for size in (2000, "4KB", "1MB", "4KB"):
        write_checkpoint(weights, tmp_path, format=format, max_shard_size=size)
        assert_same(
            read_checkpoint(tmp_path), weights, trained_on=read_checkpoint(tmp_path).config.trained_on
        )
        files = sorted(path.name for path in tmp_path.iterdir())
        if size == "1MB":
            assert files == ["config.json", "model.safetensors"]
            continue
        weight_map = json.loads((tmp_path / "model.safetensors.index.json").read_text())["weight_map"]
        names = sorted({*weight_map.values()})
        assert files == ["config.json", *names, "model.safetensors.index.json"] and len(names) > 2
        for name in names:
            tensors = load_file(tmp_path / name)
            held = sum(tensor.nbytes for tensor in tensors.values())
            assert held <= (2000 if size == 2000 else 4000) or len(tensors) == 1


@pytest.mark.parametrize("size", ["16", "16MiB", "much", 0, -1])
def test_sizes_that_are_none(size, tmp_path):
    """A max_shard_size that is no size is refused, and nothing is written."""
    with pytest.raises(ArgumentError, match=f"max_shard_size={size!r}"):
        write_checkpoint(tiny_weights(), tmp_path / "out", max_shard_size=size)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format", ["xpress_struct", "speculators"])
def test_dtype(format, tmp_path):
    """The weights' dtype is kept, and another one can be asked for."""
    weights = tiny_weights(kind="xpress", draft_vocab_size=20)
    weights.backbone.bfloat16()
    weights.head.bfloat16()
    weights.lm_head = weights.lm_head.bfloat16()
    write_checkpoint(weights, tmp_path, format=format)
    stored = load_file(tmp_path / "model.safetensors")
    assert {value.dtype for value in stored.values() if value.is_floating_point()} == {torch.bfloat16}
    assert_same(read_checkpoint(tmp_path), weights, trained_on=read_checkpoint(tmp_path).config.trained_on)
    wide = read_checkpoint(tmp_path, dtype=torch.float32)
    assert {p.dtype for p in (*wide.backbone.parameters(), *wide.head.parameters())} == {torch.float32}
    assert wide.lm_head.dtype == torch.float32 and wide.draft_ids.dtype == torch.int64


@pytest.mark.parametrize(
    ("lost", "changed"),
    [
        ("embedding_scale", {"embedding_scale": 2.0}),
        ("output_multiplier", {"output_multiplier": 0.5}),
        ("logit_softcap", {"logit_softcap": 30.0}),
        ("full_is_causal", {"full_is_causal": True}),
        ("sliding_is_causal without a window", {"sliding_is_causal": True}),
        ("mlp_hidden", {"head": HeadConfig("xpress", 6, 13)}),
    ],
)
def test_not_held_by_speculators(lost, changed, tmp_path):
    """What speculators' format cannot hold is refused by name, and nothing is written."""
    weights = tiny_weights(SLIDING, sliding_is_causal=False)
    weights.config = replace(weights.config, **changed)
    with pytest.raises(UnsupportedFeatureError, match=f"cannot hold {lost}"):
        write_checkpoint(weights, tmp_path / "out", format="speculators")
    assert not (tmp_path / "out").exists()


def test_reduced_vocabularies_not_held_by_speculators(tmp_path):
    """A reduced vocabulary must ascend and have its own output head to be held by speculators' format."""
    weights = tiny_weights(draft_vocab_size=20)
    weights.draft_ids = weights.draft_ids.flip(0)
    with pytest.raises(UnsupportedFeatureError, match="do not ascend"):
        write_checkpoint(weights, tmp_path, format="speculators")
    weights = tiny_weights(draft_vocab_size=20)
    weights.lm_head = None
    with pytest.raises(UnsupportedFeatureError, match="without an output head"):
        write_checkpoint(weights, tmp_path, format="speculators")


def test_unknown_written_format(tmp_path):
    """A format of another name is refused."""
    with pytest.raises(ArgumentError, match="'gguf': it must be"):
        write_checkpoint(tiny_weights(), tmp_path, format="gguf")


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        (
            {"architectures": ["DFlash2DraftModel"]},
            "DFlash2DraftModel cannot be read. DFlash2's convolutions",
        ),
        ({"speculators_model_type": "dflash2"}, "speculators_model_type dflash2 cannot be read. DFlash2's"),
        ({"selector_rank": 256}, "DFlash2's convolutions"),
        (
            {"architectures": ["LlamaForCausalLM"]},
            "LlamaForCausalLM cannot be read. Read are: .*Qwen3XPressModel",
        ),
        ({"architectures": None}, "of none cannot be read"),
        ({"speculators_model_type": "eagle3"}, "speculators_model_type eagle3 cannot be read. Read are"),
    ],
)
def test_unread_formats(changed, match, tmp_path):
    """DFlash2 and unknown architectures are refused by name, with a list of what is read."""
    content, tensors = z_lab(tiny_weights())
    with pytest.raises(UnsupportedFeatureError, match=match):
        read_checkpoint(write(tmp_path, (content | changed, tensors)))


def test_dflash2_keys(tmp_path):
    """DFlash2's tensors are refused by name even under another architecture's."""
    content, tensors = z_lab(tiny_weights())
    tensors["layers.0.mlp_conv.base_kernel"] = torch.ones(2, 2, D)
    with pytest.raises(UnsupportedFeatureError, match=r"key layers.0.mlp_conv.base_kernel: DFlash2"):
        read_checkpoint(write(tmp_path, (content, tensors)))


@pytest.mark.parametrize(
    ("form", "ids"), [(speculators, "aux_hidden_state_layer_ids"), (deep_spec, "target_layer_ids")]
)
def test_tap_on_the_embeddings(form, ids, tmp_path):
    """A tap on the target's embeddings is refused: speculators' 0 and DeepSpec's -1."""
    content, tensors = form(tiny_weights())
    content[ids] = [0 if form is speculators else -1, 2]
    with pytest.raises(UnsupportedFeatureError, match="reads the target's embeddings"):
        read_checkpoint(write(tmp_path, (content, tensors)))


@pytest.mark.parametrize(
    ("form", "changed", "match"),
    [
        (z_lab, {"dflash_config": {"target_layer_ids": [1, 3]}}, "does not say mask_token_id"),
        (z_lab, {"dflash_config": {"target_layer_ids": [], "mask_token_id": 1}}, "names no layer"),
        (z_lab, {"block_size": "eight"}, "malformed: invalid literal"),
        (z_lab, {"num_attention_heads": "four"}, "does not describe decoder layers"),
        (serving, {"xpress_block_size": 4}, "xpress_block_size is 4, but block_size is 8"),
        (speculators, {"aux_hidden_state_layer_ids": None}, "does not say aux_hidden_state_layer_ids"),
        (speculators, {"transformer_layer_config": None}, "does not say transformer_layer_config"),
    ],
)
def test_incomplete_config(form, changed, match, tmp_path):
    """A field that is missing or malformed is named."""
    content, tensors = form(tiny_weights(kind="xpress" if form is serving else None))
    with pytest.raises(ModelError, match=match):
        read_checkpoint(write(tmp_path, (content | changed, tensors)))


def test_unknown_markov_head(tmp_path):
    """A Markov head of a kind that is not known is refused by name."""
    content, tensors = deep_spec(tiny_weights(kind="gated"))
    with pytest.raises(UnsupportedFeatureError, match="markov_head_type 'lstm'"):
        read_checkpoint(write(tmp_path, (content | {"markov_head_type": "lstm"}, tensors)))


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"version": 2}, "version 2; this library reads 1"),
        ({"width": 3}, "width"),
        ({"head": {"kind": "xpress"}}, "rank"),
    ],
)
def test_own_config_malformed(changed, match, tmp_path):
    """Our config of a later version, with unknown or with missing fields, is refused."""
    write_checkpoint(tiny_weights(), tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    with pytest.raises(ModelError, match=match):
        read_checkpoint(tmp_path)


def test_missing_key(tmp_path):
    """A missing tensor is named with the shape it should have."""
    content, tensors = z_lab(tiny_weights())
    del tensors["fc.weight"], tensors["norm.weight"]
    with pytest.raises(DrafterMismatchError, match=r"lacks fc.weight of shape \[32, 64\] and 1 others"):
        read_checkpoint(write(tmp_path, (content, tensors)))


def test_unexpected_key(tmp_path):
    """A tensor that the config has no use for is named with its shape."""
    content, tensors = z_lab(tiny_weights())
    tensors["layers.2.input_layernorm.weight"] = torch.ones(D)
    with pytest.raises(DrafterMismatchError, match=r"has layers.2.input_layernorm.weight of shape \[32\]"):
        read_checkpoint(write(tmp_path, (content, tensors)))


def test_wrong_shape(tmp_path):
    """A tensor of another shape is named with both shapes: here fc, of three taps instead of two."""
    content, tensors = z_lab(tiny_weights())
    content["dflash_config"]["target_layer_ids"] = [1, 2, 3]
    with pytest.raises(DrafterMismatchError, match=r"fc.weight has the shape \[32, 64\]; .* \[32, 96\]"):
        read_checkpoint(write(tmp_path, (content, tensors)))


def test_head_of_another_width(tmp_path):
    """A head whose tables are not as wide as the vocabulary is named with both shapes."""
    content, tensors = serving(tiny_weights(kind="xpress"))
    tensors["xpress_head.w1.weight"] = torch.ones(V + 1, 6)
    with pytest.raises(DrafterMismatchError, match=r"head.token_embed.weight .* \[51, 6\]; .* \[50, 6\]"):
        read_checkpoint(write(tmp_path, (content, tensors)))


def test_fused_rows(tmp_path):
    """A fused projection of other rows than the config's heads need is refused."""
    content, tensors = fused(tiny_weights())
    tensors["layers.1.self_attn.qkv_proj.weight"] = torch.ones(100, D)
    with pytest.raises(DrafterMismatchError, match="has 100 rows; the config asks for 128"):
        read_checkpoint(write(tmp_path, (content, tensors)))


def test_draft_ids_beyond_the_vocabulary(tmp_path):
    """Draft ids that the target does not have are refused."""
    content, tensors = speculators(tiny_weights(draft_vocab_size=20))
    tensors["d2t"][-1] = V - 19
    with pytest.raises(DrafterMismatchError, match="ids 0 to 50; the target has 50"):
        read_checkpoint(write(tmp_path, (content, tensors)))


def test_sharded(tmp_path):
    """Weights in several files are found by their index."""
    weights = tiny_weights()
    content, tensors = z_lab(weights)
    names = sorted(tensors)
    shards = {"model-1.safetensors": names[:5], "model-2.safetensors": names[5:]}
    for shard, keys in shards.items():
        save_file({key: tensors[key] for key in keys}, tmp_path / shard)
    weight_map = {key: shard for shard, keys in shards.items() for key in keys}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (tmp_path / "config.json").write_text(json.dumps(content))
    assert_same(read_checkpoint(tmp_path), weights, trained_on=STATED)
    (tmp_path / "model-2.safetensors").unlink()
    with pytest.raises(ModelError, match=r"model-2.safetensors.* cannot be read"):
        read_checkpoint(tmp_path)


def test_pickle_is_refused(tmp_path):
    """Pickled weights are not opened; the message says what to do."""
    content, _ = z_lab(tiny_weights())
    (tmp_path / "config.json").write_text(json.dumps(content))
    with pytest.raises(ModelError, match=r"no model.safetensors. Only safetensors are read"):
        read_checkpoint(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"never opened")
    with pytest.raises(UnsupportedFeatureError, match=r"pickled weights \(pytorch_model.bin\).*save_file"):
        read_checkpoint(tmp_path)


def test_damaged_files(tmp_path):
    """A folder that is missing, and files that are missing or damaged, are named."""
    with pytest.raises(ModelError, match=r"no folder .*nowhere"):
        read_checkpoint(tmp_path / "nowhere")
    with pytest.raises(ModelError, match=r"no readable config\.json"):
        read_checkpoint(tmp_path)
    for text, match in (("{", "no readable config.json"), ("[]", "no JSON object")):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(ModelError, match=match):
            read_checkpoint(tmp_path)
    write(tmp_path, z_lab(tiny_weights()))
    (tmp_path / "model.safetensors").write_bytes(b"\x00" * 20)
    with pytest.raises(ModelError, match=r"model.safetensors' cannot be read"):
        read_checkpoint(tmp_path)


def test_unwritable_folder(tmp_path):
    """A folder that cannot be made is named."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="cannot be written"):
        write_checkpoint(tiny_weights(), tmp_path / "file")


def test_hub(tmp_path, monkeypatch):
    """A hub id downloads config.json and safetensors at the root, of the revision, and nothing else."""
    from fnmatch import fnmatch

    weights, asked = tiny_weights(), {}
    folder = write(tmp_path, z_lab(weights))

    def snapshot_download(repo, *, revision, allow_patterns, ignore_patterns):
        asked.update(repo=repo, revision=revision, allow=allow_patterns, ignore=ignore_patterns)
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    read = read_checkpoint("some/drafter", revision="v1")
    assert_same(read, weights, trained_on=STATED)
    assert (asked["repo"], asked["revision"]) == ("some/drafter", "v1")
    for name, wanted in (
        ("config.json", True),
        ("model.safetensors", True),
        ("model-00001-of-00002.safetensors", True),
        ("model.safetensors.index.json", True),
        ("pytorch_model.bin", False),
        ("modeling_dflash.py", False),
        ("step_100/model.safetensors", False),
    ):
        allowed = any(fnmatch(name, pattern) for pattern in asked["allow"])
        assert (allowed and not fnmatch(name, asked["ignore"])) == wanted


def test_hub_out_of_reach(monkeypatch):
    """A download that fails says what to do."""

    def snapshot_download(repo, **options):
        raise ConnectionError("no network")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    with pytest.raises(ModelError, match=r"'some/drafter' cannot be fetched: no network. Check the name"):
        read_checkpoint("some/drafter")


def test_tables_of_the_target_are_not_loaded(tmp_path):
    """Copies of the target's tables and confidence heads stay on the disk."""
    folder, seen = write(tmp_path, deep_spec(tiny_weights(kind="vanilla"))), []

    def wanted(key):
        seen.append(key)
        return key == "fc.weight"

    assert list(checkpoint_files.read_tensors(folder, wanted, "cpu")) == ["fc.weight"]
    assert {"lm_head.weight", "embed_tokens.weight", "confidence_head.proj.bias"} <= set(seen)
