"""Where the time of a round goes on a GPU: a random target of 0.5B size and a random block-diffusion drafter.

    python -m benchmarks.gpu_round            # on the GPU; --tiny: at toy size, on the CPU

Nothing is downloaded: weights are random, and so are the tokens of the vocabulary. Random drafts are refused,
so every round pays for a whole block and gains next to nothing; "known" drafts are the answer itself. Ends
with one line `RESULT {...}`. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

import xpress_struct as xs
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.decoding.loop import Decoder
from xpress_struct.drafting.backbone import Backbone
from xpress_struct.drafting.config import DiffusionConfig, HeadConfig
from xpress_struct.drafting.diffusion import DiffusionDrafter
from xpress_struct.drafting.drafter import Draft, DraftContext
from xpress_struct.drafting.heads import make_head
from xpress_struct.drafting.weights import DraftWeights
from xpress_struct.model import Model
from xpress_struct.target.target import TransformersTarget

STEPS = ("draft", "refine", "walk", "mask", "score", "accept")
MODES: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": {"temperature": 1.0, "top_p": 0.95},
    "known": {},
}
KNOWN: dict[int, tuple[int, ...]] = {}
"""Greedy answers by seed, worked out once."""

SCHEMA = {
    "type": "array",
    "minItems": 40,
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 20, "maxLength": 200},
            "kind": {"enum": ["person", "place", "thing"]},
            "count": {"type": "integer", "minimum": 0, "maximum": 100000},
            "note": {"type": "string", "minLength": 20, "maxLength": 200},
        },
        "required": ["name", "kind", "count", "note"],
        "additionalProperties": False,
    },
}


@dataclass(frozen=True)
class Size:
    """What is built and run; the target's sizes are those of a Qwen model of 0.5B."""

    hidden: int = 896
    inner: int = 4864
    layers: int = 24
    heads: int = 14
    key_heads: int = 2
    vocabulary: int = 151_936
    drafter_layers: int = 5
    rank: int = 256
    block: int = 16
    prompt: int = 512
    rounds: int = 128

    def layers_config(self, count: int) -> Qwen3Config:
        return Qwen3Config(
            vocab_size=self.vocabulary,
            hidden_size=self.hidden,
            intermediate_size=self.inner,
            num_hidden_layers=count,
            layer_types=["full_attention"] * count,
            num_attention_heads=self.heads,
            num_key_value_heads=self.key_heads,
            head_dim=self.hidden // self.heads,
            max_position_embeddings=32_768,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=None,
            pad_token_id=None,
        )


TINY = Size(64, 96, 3, 4, 2, 600, 1, 8, 6, 20, 4)


def vocabulary_of(size: int) -> Vocabulary:
    """All bytes, an end token, and random tokens that look like words; the last ids are padding."""
    rng = random.Random(0)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    tokens = [bytes([byte]) for byte in range(256)] + [b""]
    seen = set(tokens)
    while len(tokens) < size - 40:
        word = rng.choice(["", " ", " "]) + "".join(rng.choices(letters, k=rng.randint(2, 9)))
        if (token := word.encode()) not in seen:
            seen.add(token)
            tokens.append(token)
    return Vocabulary.from_tokens(tokens, end_ids=[256], width=size)


def build(size: Size, device: torch.device) -> tuple[Model, DiffusionDrafter]:
    """Target and drafter with random weights, on the device."""
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    with torch.device(device):
        target = Qwen3ForCausalLM(size.layers_config(size.layers)).to(dtype)
        config = DiffusionConfig(
            layers=size.layers_config(size.drafter_layers),
            block_size=size.block,
            mask_token_id=size.vocabulary - 1,
            taps=tuple(sorted({1 + i * (size.layers - 2) // 5 for i in range(5)})),
            max_known=32,
            head=HeadConfig("xpress", size.rank, 2 * size.rank),
        )
        backbone, head = Backbone(config).to(dtype), make_head(config, size.vocabulary).to(dtype)
        torch.nn.init.normal_(head.mix_l, std=0.1)
    weights = DraftWeights(config, backbone.requires_grad_(False), head.requires_grad_(False))
    model = Model(TransformersTarget(target), None, vocabulary_of(size.vocabulary), None)
    return model, DiffusionDrafter(weights)


class Known:
    """Drafts a given answer, as far as it goes."""

    name, resumes, taps, honours = "known", False, (), frozenset[str]()

    def __init__(self, answer: Sequence[int], longest: int) -> None:
        self.answer, self.longest = answer, longest

    def begin(self, context: DraftContext) -> Known:
        return self

    def propose(self, output: Sequence[int], room: int, *rest: Any) -> Draft:
        return Draft([*self.answer[len(output) : len(output) + room]])


@dataclass
class Run:
    """Sums over some rounds."""

    rounds: int = 0
    seconds: float = 0.0
    syncs: int = 0
    tokens: int = 0
    accepted: int = 0
    passes: int = 0
    steps: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STEPS, 0.0))


@contextmanager
def apart(device: torch.device) -> Iterator[None]:
    """Waits for the device between the steps, so that each one's seconds are its own."""
    from xpress_struct.decoding import device_rows
    from xpress_struct.drafting import diffusion

    def waiting(step: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            synchronize(device)
            result = step(*args, **kwargs)
            synchronize(device)
            return result

        return run

    with ExitStack() as stack:
        for owner, name in (
            (diffusion, "draft_block"),
            (TransformersTarget, "score"),
            (Decoder, "_propose"),
            (Decoder, "_accept"),
        ):
            stack.enter_context(patch.object(owner, name, waiting(getattr(owner, name))))
        # Nothing of the target is left to wait for when a round is accepted.
        stack.enter_context(patch.object(device_rows, "timed", lambda *args: nullcontext()))
        yield


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@contextmanager
def counted(device: torch.device, found: list[Any]) -> Iterator[None]:
    """Collects torch's warnings of what waits for the device."""
    if device.type != "cuda":
        yield
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")
            found += [warning for warning in caught if "called a synchroniz" in str(warning.message)]


def measure(
    model: Model, drafter: Any, size: Size, mode: str, *, timed: bool = False, syncs: bool = False
) -> Run:
    """Runs rounds; the first two of each text, which read the prompt and warm up, do not count."""
    device, run, plain = model.target.device, Run(), Decoder._round

    def one(self: Decoder) -> None:
        before, tokens, stats = self.stats.forwards, len(self.output), self.stats
        steps = {step: getattr(stats, f"{step}_s") for step in STEPS}
        passes, accepted, found = stats.refine_passes, stats.accepted, []
        synchronize(device)
        started = time.perf_counter()
        with counted(device, found) if syncs else nullcontext():
            plain(self)
        synchronize(device)
        seconds = time.perf_counter() - started
        if before < 2 or stats.forwards == before:
            return
        run.rounds += 1
        run.seconds += seconds
        run.syncs += len(found)
        run.tokens += len(self.output) - tokens
        run.passes += stats.refine_passes - passes
        run.accepted += stats.accepted - accepted
        for step in STEPS:
            run.steps[step] += getattr(stats, f"{step}_s") - steps[step]
        if run.rounds >= size.rounds:
            self.finish = "cancelled"

    constraint = xs.json_schema(SCHEMA, layout="compact")
    with patch.object(Decoder, "_round", one), apart(device) if timed else nullcontext():
        for seed in range(size.rounds):
            if run.rounds >= size.rounds:
                break
            options = {"guard": False, "block_length": size.block - 1, "seed": seed, **MODES[mode]}
            prompt = [random.Random(seed).randrange(256) for _ in range(size.prompt)]
            limit = (size.rounds + 4) * size.block
            if mode == "known":
                if seed not in KNOWN:
                    with patch.object(Decoder, "_round", plain):
                        answer = model.generate(prompt, constraint, drafter=None, max_new_tokens=limit)
                    KNOWN[seed] = answer.token_ids
                drafter = Known(KNOWN[seed], size.block - 1)
            model.generate(prompt, constraint, drafter=drafter, max_new_tokens=limit, **options)
    return run


def figures(model: Model, drafter: DiffusionDrafter, size: Size, mode: str) -> dict[str, Any]:
    """One row of the table: a plain run, one with the steps apart, one that counts what waits."""
    device = model.target.device
    plain = measure(model, drafter, size, mode)
    steps = measure(model, drafter, size, mode, timed=True)
    syncs = measure(model, drafter, size, mode, syncs=True) if device.type == "cuda" else None
    spent = {step: 1000 * seconds / steps.rounds for step, seconds in steps.steps.items()}
    return {
        "rounds": plain.rounds,
        "round_ms": 1000 * plain.seconds / plain.rounds,
        "steps_ms": spent,
        "all_but_score": 1 - spent["score"] / sum(spent.values()),
        "tokens_per_round": plain.tokens / plain.rounds,
        "accepted_per_round": plain.accepted / plain.rounds,
        "passes_per_round": plain.passes / plain.rounds,
        "syncs_per_round": syncs and syncs.syncs / syncs.rounds,
    }


def table(rows: dict[str, dict[str, Any]]) -> str:
    columns = [*STEPS, "all but score", "round", "tokens", "passes", "syncs"]
    lines = ["milliseconds a round", f"{'':8}" + "".join(f"{name:>14}" for name in columns)]
    for mode, row in rows.items():
        cells = [f"{row['steps_ms'][step]:.2f}" for step in STEPS]
        cells += [f"{row['all_but_score']:.1%}", f"{row['round_ms']:.2f}"]
        cells += [f"{row['tokens_per_round']:.2f}", f"{row['passes_per_round']:.2f}"]
        syncs = row["syncs_per_round"]
        cells.append("-" if syncs is None else f"{syncs:.2f}")
        lines.append(f"{mode:8}" + "".join(f"{cell:>14}" for cell in cells))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tiny", action="store_true", help="toy size, on the CPU")
    parser.add_argument("--rounds", type=int, help="rounds of each run")
    args = parser.parse_args()
    if not args.tiny and not torch.cuda.is_available():
        parser.error("no CUDA GPU here; --tiny runs at toy size on the CPU")
    size = TINY if args.tiny else Size()
    if args.rounds:
        size = Size(**{**vars(size), "rounds": args.rounds})
    device = torch.device("cpu" if args.tiny else "cuda")
    model, drafter = build(size, device)
    rows = {mode: figures(model, drafter, size, mode) for mode in MODES}
    print(table(rows))
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    parameters = sum(p.numel() for p in model.target.model.parameters())
    print(
        "RESULT", json.dumps({"device": name, "torch": torch.__version__, "parameters": parameters, **rows})
    )


if __name__ == "__main__":
    main()
