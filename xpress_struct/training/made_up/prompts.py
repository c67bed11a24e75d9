"""Made-up prompts of every category that can be made up."""

from __future__ import annotations

import random
from collections.abc import Callable

from xpress_struct.training.made_up.chat import chat_prompt
from xpress_struct.training.made_up.code import code_prompt
from xpress_struct.training.made_up.extraction import extraction_prompt
from xpress_struct.training.made_up.sql import sql_prompt
from xpress_struct.training.made_up.tasks import task_prompt
from xpress_struct.training.prompts import TrainPrompt

__all__ = ["made_up_prompts"]

_MAKERS: dict[str, Callable[[random.Random, str], TrainPrompt]] = {
    "extraction": extraction_prompt,
    "sql": sql_prompt,
    "code": code_prompt,
    "task": task_prompt,
    "chat": chat_prompt,
}


def made_up_prompts(count: int) -> list[TrainPrompt]:
    """The first `count` prompts of each kind, without repetitions; the same in every run."""
    prompts = []
    for kind, make in _MAKERS.items():
        seen = set()
        for number in range(count):
            made = make(random.Random(f"{kind} {number}"), f"made_up_{kind}_{number}")
            if (text := str(made.prompt)) not in seen:
                seen.add(text)
                prompts.append(made)
    return prompts
