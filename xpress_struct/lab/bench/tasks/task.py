"""Task: one document to write, the same for every system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from xpress_struct.prompt import encode_prompt, with_schema

if TYPE_CHECKING:
    from xpress_struct.constraints.constraint import Constraint
    from xpress_struct.model import Model
    from xpress_struct.prompt import Prompt

__all__ = ["CATEGORIES", "Category", "Task", "prompt_ids", "prompt_of"]

Category = Literal["json", "sql", "code", "text"]
CATEGORIES: tuple[Category, ...] = ("json", "sql", "code", "text")


@dataclass(frozen=True)
class Task:
    """What is asked, what the answer must look like, and when it is right.

    Attributes:
        group: a finer kind, over which a sample is spread: a set of BFCL, a database.
        prompt: the question as text.
        messages: the question as chat messages; None makes one user message of the text.
        raw: the prompt is the beginning of a text that the model goes on with, without a chat template.
        answer_start: what an answer begins with; it stands behind the prompt and is no part of the answer.
        schema: of a JSON document; shown after the question.
        constraint: of all else that is constrained.
        grammar_start: text that the constraint's grammar has behind it when the answer begins (`constraint`
            knows of it; peers have to be told).
        stops: texts that end the answer.
        problem: a whole answer -> why it is not valid, or None.
        grade: a valid answer -> whether it is right; None where nothing tells.
    """

    id: str
    category: Category
    prompt: str
    group: str = ""
    messages: list[dict[str, Any]] | None = None
    raw: bool = False
    answer_start: str = ""
    schema: Any = None
    constraint: Constraint | None = None
    grammar_start: str = ""
    stops: tuple[str, ...] = ()
    problem: Callable[[str], str | None] = lambda text: None
    grade: Callable[[str], bool] | None = None

    @property
    def constrained(self) -> bool:
        """Whether the answer has a form to keep to."""
        return self.schema is not None or self.constraint is not None


def prompt_of(task: Task, model: Model) -> Prompt:
    """What every system is asked: the messages (raw text without a chat template) and the schema."""
    has_template = bool(getattr(model.tokenizer, "chat_template", None))
    prompt: Prompt = task.messages if has_template and task.messages is not None else task.prompt
    return prompt if task.schema is None else with_schema(prompt, task.schema)


def prompt_ids(task: Task, model: Model) -> list[int]:
    """The ids that every system reads."""
    if task.raw:
        return encode_prompt(task.prompt, model.tokenizer, chat=False)
    ids = encode_prompt(prompt_of(task, model), model.tokenizer)
    return ids + model.vocabulary.encode(task.answer_start) if task.answer_start else ids
