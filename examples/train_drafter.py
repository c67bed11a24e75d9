"""A drafter for a model, by the library behind `xpress-struct train`: at toy size, to show the steps.

python -m examples.train_drafter
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import xpress_struct as xs
from xpress_struct.training.prompts import TrainPrompt
from xpress_struct.training.split import group_of
from xpress_struct.training.start import DrafterSizes
from xpress_struct.training.train import train
from xpress_struct.training.trainer import TrainSettings

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}, "large": {"type": "boolean"}},
    "required": ["city", "large"],
    "additionalProperties": False,
}
CITIES = ("Paris", "Oslo", "Lima", "Cairo")


def main() -> str:
    """Lets the model answer a few prompts, learns from that, loads the drafter, and returns its name."""
    model = xs.load(drafter=None)
    prompts = [
        TrainPrompt(
            f"city {city}", "extraction", f"Describe {city}.", {"json_schema": SCHEMA}, group_of(city)
        )
        for city in CITIES
    ]
    with tempfile.TemporaryDirectory() as folder:
        last = train(
            model,
            prompts,
            folder,
            documents=3,
            sizes=DrafterSizes(block_size=4, draft_vocab_size=1024, rank=16, mlp_hidden=32),
            settings=TrainSettings(steps=2, documents=2, anchors=4),
        )
        drafted = xs.load(drafter=Path(folder) / "drafter")
        out = drafted.generate("Describe Rome.", xs.json_schema(SCHEMA), max_new_tokens=40, guard=False)
    print(f"{last['step']} steps on {sum(last['documents'].values())} documents\n{out.text}")
    print(f"drafter {out.stats.drafter}: {out.stats.accepted} of {out.stats.proposed} guesses stood")
    return out.stats.drafter


if __name__ == "__main__":
    main()
