"""Made-up runs, written as `bench` and `experiment` write them. No figure here was measured."""

from __future__ import annotations

import json
import random
from itertools import product
from pathlib import Path
from typing import Any

PARTS = ("draft", "refine", "walk", "mask", "score", "accept", "compile", "other")
HOSTILE = "</pre><script>alert(1)</script>"
TEXTS = {
    "json": '{"name": "get_weather", "arguments": {"city": "Berlin", "unit": "celsius", "days": 3}}',
    "sql": "SELECT name, count(*) FROM singer WHERE age > 30 GROUP BY name ORDER BY name",
    "code": 'def area(r: float) -> float:\n    """Area <of> a circle."""\n    return 3.14159 * r * r\n',
}
SPEEDS = {"plain": 1.0, "xgrammar": 2.4, "ours-none": 5.0, "ours-all": 9.0, "silent": 0.9}


def write(folder: Path, run: dict[str, Any], rows: list[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "rows.jsonl").write_text(lines, encoding="utf-8")
    return folder


def about(kind: str, systems: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "kind": kind,
        "title": f"A made-up {kind} & its report",
        "command": f"xpress-struct {kind} --out runs/made-up --tasks 'a|b.jsonl'",
        "started": "2026-11-30T03:24:51+00:00",
        "seconds": 754.2,
        "machine": {
            "cpu": "AMD EPYC 9B14",
            "cores": 2,
            "threads": 1,
            "memory_gb": 24.0,
            "gpu": None,
            "platform": "Linux-6.1-x86_64",
        },
        "versions": {"python": "3.11.7", "torch": "2.13.0", "xgrammar": "0.2.9"},
        "model": {"name": "HuggingFaceTB/SmolLM2-135M-Instruct", "dtype": "float32", "parameters": 134515008},
        "drafter": None,
        "seed": 1,
        "settings": {"max_new_tokens": 256},
        "baseline": "plain",
        "systems": systems,
    }


def bench(folder: Path, documents: int = 12, categories: tuple[str, ...] = ()) -> Path:
    """Three categories; a peer that failed, and one that completed nothing."""
    error = "ImportError: libcudart.so.12: no such file\n  in dflash/kernels.py, line 12 | <module>"
    systems = [
        {"name": "plain", "label": "plain generate", "group": "peer", "error": None},
        {"name": "xgrammar", "label": "xgrammar mask", "group": "peer", "error": None},
        {"name": "dflash", "label": "DFlash reference", "group": "peer", "error": error},
        {"name": "silent", "label": "llama.cpp", "group": "peer", "error": None},
        {"name": "ours-none", "label": "xpress_struct, no drafter", "group": "ours", "error": None},
        {"name": "ours-all", "label": "xpress_struct, all", "group": "ours", "error": None},
    ]
    random_ = random.Random(8)
    rows = []
    for mode, category, at in product(("greedy", "sampled"), categories or TEXTS, range(documents)):
        size = random_.randint(30, 150)
        for name, speed in SPEEDS.items():
            rows.append(row(random_, name, f"{category}_{at:02d}", category, mode, size, speed))
    return write(folder, about("bench", systems), rows)


def experiment(folder: Path, documents: int = 6) -> Path:
    """Block length, refinement and acceptance rule, beside a baseline that stands outside the cells."""
    axes = {
        "block_length": [4, 8, 16],
        "refine": ["none", "sequential", "parallel"],
        "acceptance": ["coupled", "block"],
        "lookup": [True],
    }
    systems = [
        {"name": "plain", "label": "plain generate", "group": "peer", "error": None},
        {"name": "ours", "label": "xpress_struct", "group": "ours", "error": None},
    ]
    random_ = random.Random(8)
    rows = [row(random_, "plain", f"json_{at:02d}", "json", "greedy", 60, 1.0) for at in range(documents)]
    for values in product(*axes.values()):
        cell = dict(zip(axes, values, strict=True))
        gain = {"none": 3.0, "sequential": 4.5, "parallel": 5.0}[cell["refine"]] * cell["block_length"] ** 0.3
        for at in range(documents):
            made = row(
                random_, "ours", f"json_{at:02d}", "json", "greedy", 60, gain, slots=cell["block_length"]
            )
            made |= {"cell": cell, "cell_id": "-".join(map(str, values))}
            rows.append(made)
    run = about("experiment", systems) | {"axes": axes, "cells": 18}
    return write(folder, run, rows)


def row(
    random_: random.Random,
    system: str,
    task: str,
    category: str,
    mode: str,
    size: int,
    speed: float,
    slots: int = 8,
) -> dict[str, Any]:
    ours = system.startswith("ours")
    drafts = ours and system != "ours-none"
    completed = system != "silent" and random_.random() < (0.5 if system == "plain" else 0.93)
    tokens = size if completed else 256
    seconds = tokens / 14 / speed * random_.uniform(0.75, 1.3)
    forwards = max(1, round(tokens / (speed * random_.uniform(0.55, 0.75)))) if ours else tokens
    weights = (
        dict(zip(PARTS, (2, 1, 0.3, 1.2, 8, 0.4, 0.5, 0.6), strict=True))
        if drafts
        else {"score": 8.0, "mask": 2.0, "other": 1.0}
    )
    whole = sum(weights.values())
    proposed = [forwards] * slots if drafts else []
    accepted = [round(forwards * 0.85 ** (slot + 1)) for slot in range(slots)] if drafts else []
    text = TEXTS[category] + (HOSTILE if task.endswith("_00") else "")
    return {
        "system": system,
        "task": task,
        "category": category,
        "mode": mode,
        "completed": completed,
        "closed": ours and not completed,
        "valid": ours or (completed and random_.random() < (0.1 if system == "plain" else 0.98)),
        "reason": None if completed else "length",
        "score": None if category == "code" else float(random_.random() < 0.3),
        "tokens": tokens,
        "forced": tokens // 3 if ours else 0,
        "forwards": forwards,
        "proposed": sum(proposed),
        "accepted": sum(accepted),
        "proposed_by_slot": proposed,
        "accepted_by_slot": accepted,
        "seconds": seconds,
        "decode_s": seconds * 0.9,
        "first_token_s": seconds * 0.1,
        "guard_share": None,
        "split": {part: seconds * weights.get(part, 0.0) / whole for part in PARTS},
        "peak_memory_bytes": round(9e8 * random_.uniform(1, 1.2)),
        "text": text,
        "pieces": pieces(text, drafts) if ours else None,
        "error": "TimeoutError: 60 s" if system == "xgrammar" and task.endswith("_03") else None,
    }


def pieces(text: str, drafts: bool) -> list[list[str]]:
    """The text in words and signs, with who found them."""
    import re

    origins = (
        ("forced", "looked_up", "drafted", "drafted", "repaired", "bonus") if drafts else ("forced", "bonus")
    )
    random_ = random.Random(len(text))
    return [[found, random_.choice(origins)] for found in re.findall(r"\s?\w+|\s+|[^\w\s]+", text)]
