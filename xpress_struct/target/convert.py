"""Turn the bundled GGUF file into a folder that transformers loads in about a second.

The GGUF holds 4-bit weights (Q4_1, embeddings Q8_0). They are dequantised to float32, so they are
close to, but not identical with, the float weights that the model's authors published.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from xpress_struct.errors import ModelError
from xpress_struct.target.wheel import note, stage

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

__all__ = ["NAME", "check_requirements", "convert"]

NAME = "SmolLM2-135M-Instruct"
EOS, CONTEXT = "<|im_end|>", 8192
_NEEDED = ("torch", "transformers", "accelerate", "gguf", "safetensors")
_SAMPLE = '{"naïve":  [12,  3.5e-7], "日本": "🙂"}\n\n\tEnd , of \\u00e9 .'


def check_requirements() -> None:
    """Check, without importing them, that the packages that conversion needs are installed.

    Raises:
        ModelError: some are missing; the message has the command that installs them.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ModelError(
            f"converting {NAME} needs {', '.join(missing)}: run `python -m pip install {' '.join(missing)}`"
        )


def convert(gguf: Path, out: Path, *, progress: bool) -> None:
    """Dequantise `gguf` and save weights, tokenizer and configs in the existing folder `out`.

    Raises:
        ModelError: transformers reads the file as something other than the expected model.
    """
    note(f"{NAME}: dequantised from 4 bits, so not the published floats", shown=progress)
    with _quiet():
        with stage("convert", 2, shown=progress) as bar:
            tokenizer = _read_tokenizer(gguf)
            bar.update()
            model = _read_model(gguf)
            bar.update()
        _check(tokenizer, model)
        with stage("save", 2, shown=progress) as bar:
            tokenizer.save_pretrained(out)
            bar.update()
            model.save_pretrained(out)
            bar.update()
    for path in out.glob("*.safetensors"):  # written private, unlike the rest
        shutil.copymode(out / "config.json", path)


def _read_tokenizer(gguf: Path) -> PreTrainedTokenizerFast:
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(
        gguf.parent, gguf_file=gguf.name, local_files_only=True, model_max_length=CONTEXT
    )
    # The GGUF says "smollm" (split off every digit, then as GPT-2); transformers knows only the
    # GPT-2 half of it, and so would cut blanks before digits in a way the model was not trained on.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    return cast("PreTrainedTokenizerFast", tokenizer)


def _read_model(gguf: Path) -> Any:
    import torch
    import transformers

    auto: Any = transformers.AutoModelForCausalLM
    generation: Any = transformers.GenerationConfig
    loaded = auto.from_pretrained(
        gguf.parent, gguf_file=gguf.name, local_files_only=True, dtype=torch.float32
    )
    # save_pretrained refuses a model that came from GGUF, so the weights move into a fresh one.
    settings = loaded.config.to_dict()
    for key in ("quantization_config", "_model_name_or_path"):
        settings.pop(key, None)
    config = type(loaded.config).from_dict(settings)
    with torch.random.fork_rng(devices=[]):  # its random weights must not move the caller's seed
        model = auto.from_config(config)
    model.load_state_dict(loaded.state_dict())
    model.generation_config = generation(
        bos_token_id=config.bos_token_id,
        eos_token_id=config.eos_token_id,
        pad_token_id=config.pad_token_id,
    )
    return model.eval()


def _check(tokenizer: PreTrainedTokenizerFast, model: Any) -> None:
    import torch

    end = tokenizer.convert_tokens_to_ids(EOS)
    special = {id for id, token in tokenizer.added_tokens_decoder.items() if token.special}
    generation = model.generation_config
    holds = {
        "the vocabulary fits the model": len(tokenizer) <= model.config.vocab_size,
        f"{EOS} ends the tokenizer's text": tokenizer.eos_token_id == end and end in special,
        f"{EOS} ends generation": generation is not None and generation.eos_token_id == end,
        "there is a chat template": bool(tokenizer.chat_template),
        "text survives the tokenizer": tokenizer.decode(tokenizer.encode(_SAMPLE)) == _SAMPLE,
        "weights are finite": all(bool(torch.isfinite(p).all()) for p in model.parameters()),
    }
    wrong = [claim for claim, true in holds.items() if not true]
    if wrong:
        import transformers

        raise ModelError(
            f"transformers {transformers.__version__} read {NAME} wrongly; these do not hold: "
            f"{'; '.join(wrong)}. Try another version of transformers"
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence transformers' own progress bars, which would mix with ours."""
    from transformers import modeling_gguf_pytorch_utils
    from transformers.utils import logging

    switch: Any = logging
    reader: Any = modeling_gguf_pytorch_utils  # its bar has no switch
    shown, bar = switch.is_progress_bar_enabled(), getattr(reader, "tqdm", None)
    switch.disable_progress_bar()
    if bar is not None:
        reader.tqdm = partial(bar, disable=True)
    try:
        yield
    finally:
        if bar is not None:
            reader.tqdm = bar
        if shown:
            switch.enable_progress_bar()
