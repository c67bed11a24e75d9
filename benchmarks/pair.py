"""A small target and a block-diffusion drafter of it, trained on the spot by a fixed recipe.

No drafter is published for the embedded model. So that refinement can be measured anywhere, a Llama over
bytes learns the synthetic documents and writes texts of its own, and a two-layer DFlash backbone with an
xPress head learns what the target says of these texts: cross-entropy of the base logits, and of the refined
ones under the text's own tokens. Both are kept in the user's cache folder, under a hash of the recipe.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import cross_entropy
from tqdm import trange
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config

from benchmarks import synthetic
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.drafting.backbone import Backbone
from xpress_struct.drafting.checkpoints import read_checkpoint, write_checkpoint
from xpress_struct.drafting.config import DiffusionConfig, HeadConfig
from xpress_struct.drafting.diffusion import DiffusionDrafter
from xpress_struct.drafting.heads import make_head
from xpress_struct.drafting.weights import DraftWeights
from xpress_struct.model import Model
from xpress_struct.target.bundled import cache_dir
from xpress_struct.target.taps import Taps
from xpress_struct.target.target import TransformersTarget

__all__ = ["Recipe", "load_pair"]

_END, _MASK = 256, 257
_BATCH = 32
_PLACES = 8
# Slots far from the anchor are rarely reached; DFlash weighs slot k with exp(-(k - 1) / gamma).
_GAMMA = 8.0


@dataclass(frozen=True)
class Recipe:
    """How both are made.

    Attributes:
        seed: of documents, weights and draws.
        width: hidden size of both.
        target_steps, drafter_steps: optimizer steps.
        texts: that the target writes, at temperature 1, for the drafter to learn from.
        length: bytes of a text at most.
        block: slots of a block, the anchor's included.
        known: longest run of known bytes in front of a block.
        rank: of the head.
    """

    seed: int = 0
    width: int = 96
    target_steps: int = 400
    texts: int = 1024
    length: int = 160
    drafter_steps: int = 600
    block: int = 33
    known: int = 32
    rank: int = 64

    @property
    def key(self) -> str:
        """Hash of the recipe, of the code that follows it, and of torch's version."""
        sources = [Path(path).read_text(encoding="utf-8") for path in (__file__, synthetic.__file__)]
        whole = "\n".join([repr(self), torch.__version__, *sources])
        return hashlib.sha256(whole.encode()).hexdigest()[:12]


def load_pair(recipe: Recipe, *, fresh: bool = False, folder: Path | None = None) -> Model:
    """The target with its drafter; made first where the folder does not hold it.

    Args:
        fresh: make it again.
        folder: by default one of the recipe's own in the cache of xpress_struct.
    """
    folder = folder or cache_dir() / "benchmarks" / f"pair-{recipe.key}"
    if fresh or not folder.exists():
        _make(recipe, folder)
    target = LlamaForCausalLM.from_pretrained(folder / "target", dtype=torch.float32)
    tokens = [*(bytes([byte]) for byte in range(256)), b""]
    vocabulary = Vocabulary.from_tokens(tokens, end_ids=[_END], width=_MASK + 1)
    drafter = DiffusionDrafter(read_checkpoint(folder / "drafter"))
    return Model(TransformersTarget(target), None, vocabulary, drafter)


def _make(recipe: Recipe, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with torch.random.fork_rng(), tempfile.TemporaryDirectory(dir=folder.parent) as work:
        torch.manual_seed(recipe.seed)
        target = _train_target(recipe)
        drafter = _train_drafter(recipe, target, _write_texts(recipe, target))
        made = Path(work) / "pair"
        target.save_pretrained(made / "target")
        write_checkpoint(drafter, made / "drafter")
        shutil.rmtree(folder, ignore_errors=True)
        made.replace(folder)


def _train_target(recipe: Recipe) -> LlamaForCausalLM:
    """A Llama of two layers that continues a prompt by a document and the end token."""
    config = LlamaConfig(
        vocab_size=_MASK + 1,
        hidden_size=recipe.width,
        intermediate_size=2 * recipe.width,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        bos_token_id=None,
        eos_token_id=_END,
        pad_token_id=None,
    )
    model = LlamaForCausalLM(config)
    rng = random.Random(recipe.seed)
    prompts = [prompt for _, prompt in synthetic.prompts()]

    def loss() -> Tensor:
        chosen = rng.choices(prompts, k=_BATCH)
        pairs = [(list(p.encode()), list(synthetic.document(rng, p).encode())) for p in chosen]
        ids = _padded([[*prompt, *text, _END] for prompt, text in pairs])
        labels = ids.clone()
        for row, (prompt, text) in enumerate(pairs):
            labels[row, : len(prompt)] = -100
            labels[row, len(prompt) + len(text) + 1 :] = -100
        logits = model(input_ids=ids).logits
        return cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())

    _optimize(loss, [model], recipe.target_steps, 4e-3, "target")
    return model.eval().requires_grad_(False)


def _write_texts(recipe: Recipe, target: LlamaForCausalLM) -> list[list[int]]:
    """Prompt, text and end token of what the target writes, sampled at temperature 1 without a grammar."""
    prompts = [list(prompt.encode()) for _, prompt in synthetic.prompts()]
    prompts = [prompts[place % len(prompts)] for place in range(recipe.texts)]
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(prompt)) + prompt for prompt in prompts])
    starts = torch.tensor([width - len(prompt) for prompt in prompts])
    written = target.generate(
        input_ids=ids,
        attention_mask=(torch.arange(width) >= starts[:, None]).long(),
        do_sample=True,
        temperature=1.0,
        top_k=0,
        max_new_tokens=recipe.length - width,
        pad_token_id=_END,
    ).tolist()
    texts = []
    for start, row in zip(starts.tolist(), written, strict=True):
        ended = row.index(_END) + 1 if _END in row else len(row)
        texts.append(row[start:ended])
    return texts


def _train_drafter(recipe: Recipe, target: LlamaForCausalLM, texts: list[list[int]]) -> DraftWeights:
    """Learns the target's distributions along its own texts, with and without the head's bias."""
    config = _drafter_config(recipe)
    backbone, head = Backbone(config), make_head(config, _MASK + 1)
    ids = _padded(texts, recipe.length)
    lengths = torch.tensor([len(text) for text in texts])
    states, logits = _read(target, config.taps, ids)
    embed, output = target.get_input_embeddings(), target.get_output_embeddings()
    rng = random.Random(recipe.seed)
    weights = torch.exp(-torch.arange(recipe.block - 1) / _GAMMA)

    def loss_at_one_place(blocks: int) -> Tensor:
        known = rng.choice([1, rng.randint(1, recipe.known)])
        start = rng.randint(2, recipe.length - known - recipe.block)
        first, stop = start + known, start + known + recipe.block - 1
        rows = torch.tensor(rng.sample(range(len(texts)), min(len(texts), blocks)))
        block = ids[rows, start:stop]
        block[:, known:] = _MASK
        forward = torch.vmap(lambda features, embedded: backbone(features, embedded, start))
        with sdpa_kernel(SDPBackend.MATH):  # the kernel that vmap knows
            hidden = forward(backbone.fuse(states[rows, :start]), embed(block))
        base = output(hidden[:, known:])
        prev = ids[rows, first - 2 : stop - 1]
        bias = head.bias(prev, head.prepare(hidden[:, known - 1 :]))[:, 1:]
        wanted = logits[rows, first - 1 : stop - 1].softmax(-1)
        each = weights * (torch.arange(first, stop) < lengths[rows, None])
        terms = _cross_entropies(base, wanted) + _cross_entropies(base + bias, wanted)
        return (terms * each).sum() / each.sum().clamp_min(1)

    def loss() -> Tensor:
        # Blocks at one place make a batch; several places a step keep its gradient from wandering.
        return torch.stack([loss_at_one_place(2 * _BATCH // _PLACES) for _ in range(_PLACES)]).mean()

    _optimize(loss, [backbone, head], recipe.drafter_steps, 5e-3, "drafter")
    return DraftWeights(config, backbone.eval(), head.eval())


def _drafter_config(recipe: Recipe) -> DiffusionConfig:
    layers = Qwen3Config(
        vocab_size=_MASK + 1,
        hidden_size=recipe.width,
        intermediate_size=2 * recipe.width,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=recipe.width // 4,
        max_position_embeddings=512,
    )
    return DiffusionConfig(
        layers=layers,
        block_size=recipe.block,
        mask_token_id=_MASK,
        taps=(0, 1),
        max_known=recipe.known,
        head=HeadConfig("xpress", rank=recipe.rank, mlp_hidden=2 * recipe.rank),
    )


def _read(target: LlamaForCausalLM, layers: tuple[int, ...], ids: Tensor) -> tuple[Tensor, Tensor]:
    """Tapped states [texts, length, taps * d] and logits [texts, length, V]."""
    taps, states, logits = Taps(target), [], []
    for rows in torch.split(ids, 2 * _BATCH):
        with torch.no_grad(), taps.taken(layers) as taken:
            logits.append(target(input_ids=rows).logits)
        states.append(torch.cat([taken[layer] for layer in layers], -1))
    return torch.cat(states), torch.cat(logits)


def _optimize(loss: Any, modules: list[nn.Module], steps: int, rate: float, name: str) -> None:
    parameters = [parameter for module in modules for parameter in module.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.1)
    with trange(steps, desc=f"training the {name}", file=sys.stderr) as bar:
        for _ in bar:
            optimizer.zero_grad()
            value = loss()
            value.backward()
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            schedule.step()
            bar.set_postfix(loss=f"{value.item():.3f}", refresh=False)


def _cross_entropies(logits: Tensor, targets: Tensor) -> Tensor:
    """Of logits [.., V] to distributions [.., V]."""
    return -(targets * logits.log_softmax(-1)).sum(-1)


def _padded(rows: list[list[int]], least: int = 0) -> Tensor:
    """Ids [rows, longest]; end tokens behind the end."""
    width = max(least, *map(len, rows))
    return torch.tensor([[*row, *[_END] * (width - len(row))] for row in rows])
