"""XPressGenerate: this library's decoding as a `custom_generate` of transformers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import GenerationConfig, StoppingCriteriaList
from transformers.generation import GenerateDecoderOnlyOutput

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.drafting.loading import check_drafter, load_drafter
from xpress_struct.errors import ArgumentError, UnknownArgumentError, UnsupportedFeatureError
from xpress_struct.integrations.transformers.arguments import (
    check_arguments,
    passed_to_generate,
    prompt_rows,
    sampling_of,
)
from xpress_struct.integrations.transformers.criteria import watched_criteria
from xpress_struct.integrations.transformers.processed import (
    ProcessedTarget,
    Processor,
    is_outlines,
    processors_before_mask,
)
from xpress_struct.integrations.transformers.rows import Row, RowOutput, sequences_of
from xpress_struct.integrations.transformers.shared import (
    Constraints,
    constraint_list,
    ids_of,
    row_constraint,
    vocabulary_of,
)
from xpress_struct.model import Model
from xpress_struct.options import Options
from xpress_struct.results import Generation
from xpress_struct.target.loading import read_tokenizer
from xpress_struct.target.target import TransformersTarget

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase
    from transformers.generation.streamers import BaseStreamer

__all__ = ["XPressGenerate", "XPressOutput"]

# What `generate` has no argument for. (Its stop_strings never reach a custom_generate: it wants a tokenizer
# for them, and drops the one that it is given.)
_OWN = (
    *("seed", "stop_strings", "include_stop_string", "acceptance", "block_length", "guard", "cancel"),
    *("refine", "refine_passes", "denoising_steps", "draft_temperature", "draft_confidence"),
    *("max_retries", "on_limit"),
)


@dataclass
class XPressOutput(GenerateDecoderOnlyOutput):  # type: ignore[misc]
    """What `generate(..., return_dict_in_generate=True)` returns.

    Attributes:
        sequences: ids [rows, n], prompts included, padded on the right.
        generations: of each row the value, text, reason of its end and statistics.
    """

    generations: tuple[Generation, ...] | None = None


class XPressGenerate:
    """Decodes inside `model.generate`, under a constraint and with speculation.

        decode = XPressGenerate(xs.json_schema(Ticket), tokenizer=tokenizer)
        ids = model.generate(**inputs, custom_generate=decode, max_new_tokens=200)

    The ids are those of `xs.Model.generate`. Arguments of `generate` are honoured or refused by name; logits
    processors come before the mask and are called with one row at a time, for prefixes that go back and come
    again, so they must be functions of ids and scores; where they bar all that the constraint allows, the
    constraint wins. Rows are decoded one after another. Keep the object for further calls: it keeps the
    drafter. `torch.manual_seed` decides what is sampled unless `seed` is given.

    Args:
        constraint: for every row, or a list with one for each prompt; None leaves a row free.
        tokenizer: of the model; None reads the one that lies where the model was loaded from.
        drafter: as of `xs.load`.
        streamer: gets the prompt, then token by token what stands; takes one row.
        options: `seed`, `stop_strings`, `acceptance`, `block_length`, `on_limit` and others of `xs.Options`
            that `generate` has no argument for.

    Raises:
        ArgumentError, UnknownArgumentError: an argument cannot be honoured.
        UnsupportedFeatureError: when called: nor can an argument of `generate`.
    """

    def __init__(
        self,
        constraint: Constraints = None,
        *,
        tokenizer: PreTrainedTokenizerBase | str | None = None,
        drafter: Any = "auto",
        streamer: BaseStreamer | None = None,
        **options: Any,
    ) -> None:
        check_drafter(drafter)
        self._constraints = constraint_list(constraint)
        self._tokenizer: Any = tokenizer
        self._drafter, self._streamer = drafter, streamer
        if refused := [name for name in options if name not in _OWN]:
            raise UnknownArgumentError(
                f"XPressGenerate takes no {refused[0]!r}. What generate() knows goes there; here: "
                f"{', '.join(_OWN)}."
            )
        self._options = options
        Options.read(options)
        self._models: dict[tuple[int, ...] | None, Model] = {}

    def __call__(
        self,
        model: Any,
        input_ids: Tensor,
        logits_processor: Sequence[Processor],
        stopping_criteria: StoppingCriteriaList,
        generation_config: GenerationConfig,
        **model_kwargs: Any,
    ) -> Tensor | XPressOutput:
        """Called by `generate`."""
        rows, streamer = self._prepare(
            model, input_ids, logits_processor, stopping_criteria, generation_config, model_kwargs
        )
        generations = [row.decode() for row in rows]
        if streamer is not None:
            streamer.end()
        sequences = sequences_of(input_ids, generations, generation_config)
        if generation_config.return_dict_in_generate:
            return XPressOutput(sequences=sequences, generations=tuple(generations))
        return sequences

    def stream(
        self,
        model: Any,
        input_ids: Tensor,
        logits_processor: Sequence[Processor],
        stopping_criteria: StoppingCriteriaList,
        generation_config: GenerationConfig,
        **model_kwargs: Any,
    ) -> Iterator[str]:
        """A `custom_generate` too, for one row: `generate` then returns its text piece by piece.

            for piece in model.generate(**inputs, custom_generate=decode.stream):
                print(piece, end="")

        Rounds run as pieces are asked for; closing the iterator stops the model.
        """
        rows, streamer = self._prepare(
            model, input_ids, logits_processor, stopping_criteria, generation_config, model_kwargs
        )
        if len(rows) > 1 or streamer is not None:
            asked = "a streamer" if streamer is not None else f"{len(rows)} rows"
            raise ArgumentError(f"stream gives the pieces of one row, and takes no streamer: not {asked}.")
        return rows[0].pieces()

    def _prepare(
        self,
        model: Any,
        input_ids: Tensor,
        logits_processor: Sequence[Processor],
        stopping_criteria: StoppingCriteriaList,
        config: GenerationConfig,
        model_kwargs: dict[str, Any],
    ) -> tuple[list[Row], BaseStreamer | None]:
        """The rows of a call, not yet begun."""
        passed = passed_to_generate(model)
        check_arguments(config, model_kwargs, passed)
        prompts = prompt_rows(input_ids, model_kwargs)
        streamer = self._streamer_of(passed, input_ids)
        decoder = self._model(model, config)
        options = self._read_options(config, input_ids.shape[1])
        constraints, processors = self._split(
            processors_before_mask(logits_processor, config), decoder.vocabulary
        )
        criteria = watched_criteria(stopping_criteria, config, decoder.vocabulary.end_ids)
        rows = []
        for number, (padding, prompt) in enumerate(prompts):
            index = row_constraint(len(constraints), number, len(prompts))
            used = decoder
            if processors:
                assert isinstance(decoder.target, TransformersTarget)
                target = ProcessedTarget(decoder.target, processors, padding, input_ids.device)
                used = Model(target, decoder.tokenizer, decoder.vocabulary, decoder.drafter)
            emit = RowOutput(padding + prompt, criteria, streamer, input_ids.device)
            rows.append(Row(used, prompt, constraints[index], options, number, emit))
        return rows, streamer

    def _split(
        self, processors: list[Processor], vocabulary: Vocabulary
    ) -> tuple[Sequence[Constraint | None], list[Processor]]:
        """The constraints of a call, and the processors that come before their mask."""
        for each in processors:
            if is_outlines(each):
                raise UnsupportedFeatureError(
                    f"{type(each).__name__} of Outlines goes forward only, so drafts cannot be checked with "
                    "it: use OutlinesGenerate of xpress_struct.integrations.outlines, which reads its "
                    "constraint.",
                    feature="logits_processor",
                )
        return self._constraints, processors

    def _streamer_of(self, passed: dict[str, Any], input_ids: Tensor) -> BaseStreamer | None:
        theirs = passed.get("streamer")
        if theirs is not None and self._streamer is not None:
            raise ArgumentError("Pass streamer to generate() or to XPressGenerate, not to both.")
        streamer = theirs or self._streamer
        if streamer is not None and input_ids.shape[0] > 1:
            raise ArgumentError(f"A streamer takes one row, not {input_ids.shape[0]}: leave it out.")
        if self._streamer is not None:  # generate() has given the prompt to its own
            self._streamer.put(input_ids.cpu())
        return streamer

    def _read_options(self, config: GenerationConfig, prompt_length: int) -> Options:
        options = {**self._options, **sampling_of(config)}
        options["max_new_tokens"] = config.max_length - prompt_length
        if options.get("seed") is None:
            options["seed"] = int(torch.randint(2**63 - 1, ())) if config.do_sample else 0
        return Options.read(options)

    def _model(self, model: Any, config: GenerationConfig) -> Model:
        """The library's model over one of transformers, for the end ids of a call."""
        if model.training:
            raise ArgumentError("The model is in training mode; call model.eval() first.")
        end_ids = ids_of(config.eos_token_id)
        if any(kept.target.model is not model for kept in self._models.values()):  # type: ignore[attr-defined]
            self._models.clear()
        if end_ids not in self._models:
            tokenizer = self._tokenizer if self._tokenizer is not None else _place_of(model)
            if isinstance(tokenizer, str):
                tokenizer = read_tokenizer(tokenizer)
            target = TransformersTarget(model)
            vocabulary = vocabulary_of(tokenizer, target.width, end_ids)
            drafter = load_drafter(self._drafter, target, vocabulary, tokenizer)
            self._models[end_ids] = Model(target, tokenizer, vocabulary, drafter)
        return self._models[end_ids]


def _place_of(model: Any) -> str:
    place = str(getattr(model.config, "name_or_path", "") or "")
    if not place:
        raise ArgumentError(
            "This model does not say where it was loaded from: pass XPressGenerate(..., tokenizer=tokenizer)."
        )
    return place
