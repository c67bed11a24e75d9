"""The drafter of the embedded model, as it is shipped."""

from __future__ import annotations

import hashlib
from importlib.resources import files

import pytest

import xpress_struct as xs
from xpress_struct.drafting.checkpoints import read_checkpoint
from xpress_struct.drafting.checkpoints.fits import template_fingerprint
from xpress_struct.drafting.checkpoints.published import shipped_for
from xpress_struct.target.bundled import NAME, model_dir

FOLDER = files("xpress_struct") / "weights" / NAME


def test_the_card_says_what_is_there():
    """All weights are under 40 MB, and the card names their sha256 and the template's."""
    weights = (FOLDER / "model.safetensors").read_bytes()
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert len(weights) < 40e6
    assert hashlib.sha256(weights).hexdigest() in card
    template = read_checkpoint(str(FOLDER)).config.trained_on.template
    assert template is not None and template in card


def test_other_models_do_not_get_it(tmp_path):
    """Only the embedded model's own folder stands for it; no name and another folder do not."""
    assert shipped_for(str(model_dir())) is not None
    assert shipped_for("") is None
    assert shipped_for(str(tmp_path / NAME)) is None


@pytest.mark.model
@pytest.mark.parametrize("asked", [{}, {"temperature": 0.7, "seed": 3}])
def test_load_takes_it_and_it_changes_no_token(asked):
    """`xs.load()` drafts with it and lookup; ids equal those without a drafter; some of its guesses stand."""
    model = xs.load()
    assert model.drafter is not None and model.drafter.name == "xpress+lookup"
    assert template_fingerprint(model.tokenizer) == read_checkpoint(str(FOLDER)).config.trained_on.template
    prompt = "Write a Python function that adds two numbers."
    asked = {"max_new_tokens": 40, "guard": False, **asked}
    plain, drafted = (model.generate(prompt, drafter=each, **asked) for each in (None, "model"))
    assert drafted.token_ids == plain.token_ids
    assert "drafted" in drafted.origins or "repaired" in drafted.origins
    assert drafted.stats.forwards < plain.stats.forwards
