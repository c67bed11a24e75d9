"""Plain questions, the control group."""

from __future__ import annotations

import random

from xpress_struct.training.prompts import TrainPrompt
from xpress_struct.training.split import group_of

__all__ = ["chat_prompt"]

_TOPICS = (
    "photosynthesis", "the French Revolution", "compound interest", "black holes", "vaccines",
    "jazz music", "electric cars", "the water cycle", "machine learning", "healthy breakfasts",
    "gravity", "time management", "the Roman Empire", "coral reefs", "inflation", "gardening",
    "job interviews", "volcanoes", "the internet", "public speaking", "yoga", "solar panels",
    "the human heart", "learning a language", "bread baking", "cloud computing", "earthquakes",
    "photography", "the stock market", "sleep", "recycling", "chess", "space travel", "budgeting",
    "migration of birds", "the Great Wall of China", "poetry", "batteries",
)  # fmt: skip
_ASKS = (
    "Explain {} in simple words.",
    "Give me three facts about {}.",
    "Write a short paragraph about {}.",
    "What are the most important things to know about {}?",
    "List five tips about {}.",
    "Write an email to a colleague about {}.",
    "Why does {} matter?",
    "Make up a short story about {}.",
    "What questions would a beginner ask about {}?",
    "Write a haiku about {}.",
)


def chat_prompt(rng: random.Random, name: str) -> TrainPrompt:
    """One question."""
    topic = rng.choice(_TOPICS)
    return TrainPrompt(name, "chat", rng.choice(_ASKS).format(topic), None, group_of(f"topic {topic}"))
