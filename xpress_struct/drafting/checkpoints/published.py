"""Drafters by the name of their target: those in this package, and published ones."""

from __future__ import annotations

from pathlib import Path

from xpress_struct.target.bundled import NAME, model_dir

__all__ = ["PUBLISHED", "cached_for", "shipped_for"]

PUBLISHED = {
    "Qwen/Qwen3-8B": (
        "UIUC-SSAIL/Qwen3-8B-XPress-b16",
        "UIUC-SSAIL/Qwen3-8B-Markov-b16",
        "deepseek-ai/dspark_qwen3_8b_block7",
        "z-lab/Qwen3-8B-DFlash-b16",
    ),
    "Qwen/Qwen3-4B": (
        "deepseek-ai/dspark_qwen3_4b_block7",
        "z-lab/Qwen3-4B-DFlash-b16",
        "deepseek-ai/dflash_qwen3_4b_block7",
    ),
}
"""Hub ids of targets -> hub ids of drafters; those with a head come before bare ones."""


def cached_for(target_name: str) -> str | None:
    """The first published drafter of this target that is in the Hugging Face cache; nothing is downloaded."""
    return next((repo for repo in PUBLISHED.get(target_name, ()) if _is_cached(repo)), None)


def shipped_for(target_name: str) -> Path | None:
    """The folder in this package of the drafter of a target: the embedded model has one."""
    if not target_name or Path(target_name) != model_dir():
        return None
    return Path(__file__).parents[2] / "weights" / NAME


def _is_cached(repo: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    def held(name: str) -> bool:
        return isinstance(try_to_load_from_cache(repo, name), str)

    return held("config.json") and (held("model.safetensors") or held("model.safetensors.index.json"))
