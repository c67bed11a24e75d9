"""What scoring several tokens at once costs, beside scoring one, with packed linear layers and without.

    python -m benchmarks.forwards

One run, one thread, the two ways in turn. It prints a table and ends with one line `RESULT {...}`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time

import torch
from torch import nn
from tqdm import tqdm

from xpress_struct.target import bundled
from xpress_struct.target.packed import PackedLinear
from xpress_struct.target.target import TransformersTarget

ROWS = (1, 2, 4, 8, 16, 32)


def seconds(target: TransformersTarget, packed: bool, rows: int, context: int) -> float:
    """Of one forward of `rows` tokens behind `context` tokens, whose cache is filled before."""
    for layer in target.model.modules():
        if type(layer) in (nn.Linear, PackedLinear):
            layer.__class__ = PackedLinear if packed else nn.Linear
    cache = target.new_cache()
    ids = list(range(100, 100 + context))
    target.score(cache, ids, 1)
    target.score(cache, ids[:rows], rows)
    cache.rollback_to([context])
    started = time.perf_counter()
    target.score(cache, ids[:rows], rows)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.forwards", description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", help="hub id or folder; the embedded model by default")
    parser.add_argument("--context", type=int, default=300, help="tokens that the cache holds")
    parser.add_argument("--repeat", type=int, default=7)
    given = parser.parse_args()
    torch.set_num_threads(1)
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(given.model or bundled.pull(), dtype=torch.float32)
    target = TransformersTarget(model)
    found: dict[tuple[bool, int], list[float]] = {}
    for _ in tqdm(range(given.repeat), file=sys.stderr):
        for rows in ROWS:
            for packed in (False, True):
                found.setdefault((packed, rows), []).append(seconds(target, packed, rows, given.context))
    medians = {key: statistics.median(times) for key, times in found.items()}
    print(f"{'tokens':>6}  {'plain ms':>8}  {'packed ms':>9}  {'plain / one':>11}  {'packed / one':>12}")
    result: dict[str, dict[str, float]] = {}
    for rows in ROWS:
        plain, packed = (medians[way, rows] for way in (False, True))
        ratios = plain / medians[False, 1], packed / medians[True, 1]
        print(f"{rows:6}  {1e3 * plain:8.1f}  {1e3 * packed:9.1f}  {ratios[0]:11.2f}  {ratios[1]:12.2f}")
        result[str(rows)] = {
            "packed_beside_plain": round(packed / plain, 3),
            "plain_beside_one": round(ratios[0], 3),
            "packed_beside_one": round(ratios[1], 3),
        }
    print("RESULT " + json.dumps(result))


if __name__ == "__main__":
    main()
