"""What a user names as a drafter -> Drafter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.drafting.autoregressive import AutoregressiveDrafter
from xpress_struct.drafting.checkpoints import read_checkpoint
from xpress_struct.drafting.checkpoints.files import fetch_config
from xpress_struct.drafting.checkpoints.fits import check_fits
from xpress_struct.drafting.checkpoints.formats import is_diffusion_drafter
from xpress_struct.drafting.checkpoints.published import cached_for, shipped_for
from xpress_struct.drafting.diffusion import DiffusionDrafter
from xpress_struct.drafting.drafter import Drafter
from xpress_struct.drafting.lookup import LookupDrafter
from xpress_struct.drafting.masked import MaskedDrafter
from xpress_struct.drafting.several import SeveralDrafter
from xpress_struct.errors import ArgumentError, ModelError
from xpress_struct.target.loading import load_target
from xpress_struct.target.packed import pack_linears
from xpress_struct.target.target import TransformersTarget

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["as_drafter", "check_drafter", "load_drafter"]

_MAY_BE = (
    "'auto', 'lookup', None, a drafter's checkpoint or a smaller model (hub id, folder or loaded model), "
    "a list of these, or an object with a method begin(context)"
)


def check_drafter(drafter: Any) -> None:
    """Refuses what stands for no drafter, before anything is loaded.

    Raises:
        ArgumentError: it stands for none.
    """
    if isinstance(drafter, (list, tuple)):
        for each in drafter:
            check_drafter(each)
    elif not _is_place(drafter) and not _is_model(drafter):
        as_drafter(drafter)


def load_drafter(
    drafter: Any,
    target: TransformersTarget,
    vocabulary: Vocabulary,
    tokenizer: PreTrainedTokenizerBase,
) -> Drafter | None:
    """The drafter that a name, a path or an object stands for; what is named is loaded.

    Args:
        target, vocabulary, tokenizer: what it drafts for.

    Raises:
        ArgumentError: it stands for none.
        ModelError: it cannot be loaded.
        DrafterMismatchError, TokenizerMismatchError: it does not fit the target.
    """
    if isinstance(drafter, str) and drafter == "auto":
        name = str(getattr(target.model.config, "name_or_path", ""))
        shipped = shipped_for(name)
        drafter = cached_for(name) or ([shipped, "lookup"] if shipped else "lookup")
    if isinstance(drafter, (list, tuple)):
        loaded = [load_drafter(each, target, vocabulary, tokenizer) for each in drafter]
        return SeveralDrafter([each for each in loaded if each is not None])
    if _is_place(drafter):
        return _read(drafter, target, vocabulary, tokenizer)
    if _is_model(drafter):
        if _is_masked(drafter.config.architectures or [type(drafter).__name__]):
            return _masked(drafter, vocabulary, tokenizer)
        return AutoregressiveDrafter(TransformersTarget(drafter), vocabulary)
    return as_drafter(drafter)


def as_drafter(drafter: Any) -> Drafter | None:
    """The drafter that a name or an object stands for; nothing is loaded.

    Raises:
        ArgumentError: it stands for none.
    """
    if drafter is None or drafter == "none":
        return None
    if isinstance(drafter, str) and drafter in ("auto", "lookup"):
        return LookupDrafter()
    if isinstance(drafter, (list, tuple)):
        members = [as_drafter(each) for each in drafter]
        return SeveralDrafter([each for each in members if each is not None])
    if hasattr(drafter, "target") and hasattr(drafter, "vocabulary") and not hasattr(drafter, "begin"):
        return AutoregressiveDrafter(drafter.target, drafter.vocabulary)
    if not hasattr(drafter, "begin"):
        raise ArgumentError(
            f"drafter={drafter!r}: it must be one of {_MAY_BE}. Names are loaded by xs.load only."
        )
    return drafter  # type: ignore[no-any-return]


def _is_place(drafter: Any) -> bool:
    """A hub id or a folder."""
    if isinstance(drafter, str):
        return "/" in drafter or Path(drafter).is_dir()
    return isinstance(drafter, Path)


def _is_model(drafter: Any) -> bool:
    """A loaded model of transformers."""
    return hasattr(drafter, "config") and hasattr(drafter, "forward")


def _read(
    name: str | Path, target: TransformersTarget, vocabulary: Vocabulary, tokenizer: PreTrainedTokenizerBase
) -> Drafter:
    fields: Mapping[str, Any] = fetch_config(name)
    if is_diffusion_drafter(fields):
        weights = read_checkpoint(name, device=target.device, dtype=target.model.dtype, tokenizer=tokenizer)
        check_fits(weights.config, target, vocabulary, tokenizer)
        pack_linears(weights.backbone)
        if weights.head is not None:
            pack_linears(weights.head)
        return DiffusionDrafter(weights)
    if _is_masked(fields.get("architectures") or []):
        from transformers import AutoModelForMaskedLM

        try:
            model = AutoModelForMaskedLM.from_pretrained(str(name), dtype=target.model.dtype)
        except (OSError, ValueError, ImportError) as error:
            raise ModelError(f"The drafter {str(name)!r} cannot be loaded: {error}") from error
        pack_linears(model := model.to(target.device))
        return _masked(model, vocabulary, tokenizer)
    loaded = load_target(name, device=target.device)
    own = Vocabulary.from_tokenizer(loaded.tokenizer, width=loaded.target.width, end_ids=loaded.end_ids)
    return AutoregressiveDrafter(loaded.target, own)


def _is_masked(architectures: list[str]) -> bool:
    return any(name.endswith("ForMaskedLM") for name in architectures)


def _masked(model: Any, vocabulary: Vocabulary, tokenizer: PreTrainedTokenizerBase) -> MaskedDrafter:
    mask = model.config.mask_token_id if hasattr(model.config, "mask_token_id") else tokenizer.mask_token_id
    if mask is None:
        raise ArgumentError(
            "A masked language model needs its mask token: neither its config nor the target's tokenizer "
            "names one. Make MaskedDrafter(model, vocabulary, mask_token_id) yourself."
        )
    return MaskedDrafter(model, vocabulary, mask)
