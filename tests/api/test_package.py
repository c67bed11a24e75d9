"""The package: import time, public names, the family of errors, results as data."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys

import pytest

import xpress_struct as xs
from tests.cases.scripts import PROMPT, drafts, noisy, writer
from tests.stubs import stub_model
from xpress_struct import errors
from xpress_struct.results import Stats

BUILTINS = {
    "ArgumentError": "ValueError",
    "CacheRollbackError": "RuntimeError",
    "CompileLimitError": "RuntimeError",
    "DeadEndError": "RuntimeError",
    "GrammarError": "ValueError",
    "IncompleteOutputError": "RuntimeError",
    "MissingPackageError": "ImportError",
    "ModelError": "OSError",
    "OutputValidationError": "ValueError",
    "SchemaError": "ValueError",
    "TokenizerMismatchError": "ValueError",
    "UnknownArgumentError": "TypeError",
    "UnsupportedFeatureError": "NotImplementedError",
}


def test_import_is_fast_and_leaves_torch_alone() -> None:
    """`import xpress_struct` takes under 0.3 s and imports no torch, transformers or llguidance."""
    code = (
        "import sys, time; t = time.process_time(); import xpress_struct; "
        "dir(xpress_struct); spent = time.process_time() - t; "
        "heavy = [m for m in ('torch', 'transformers', 'llguidance', 'pydantic') if m in sys.modules]; "
        "print(spent, *heavy)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    spent, *heavy = min(run.stdout for run in runs).split()
    assert heavy == []
    assert float(spent) < 0.3


def test_making_an_error_family_check_needs_no_torch() -> None:
    """The errors can be imported, to be caught, without torch."""
    code = "import sys; from xpress_struct.errors import XPressError; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_public_names_are_few_and_there() -> None:
    """At most twenty public names, each importable, each in dir()."""
    assert len(xs.__all__) <= 20
    assert sorted(xs.__all__) == list(xs.__all__)
    for name in xs.__all__:
        assert getattr(xs, name) is not None
        assert name in dir(xs)


@pytest.mark.parametrize("first", ["load", "Stream"])
def test_names_are_functions_whatever_is_used_first(first: str) -> None:
    """No public name turns into a module because another one was used before it."""
    code = (
        f"import types, xpress_struct as xs; xs.{first}; "
        "print([n for n in xs.__all__ if isinstance(getattr(xs, n), types.ModuleType)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A name that does not exist is an AttributeError that says where."""
    with pytest.raises(AttributeError, match=r"xpress_struct.*nonsense"):
        _ = xs.nonsense


@pytest.mark.parametrize("name", BUILTINS)
def test_each_error_is_of_the_family_and_a_builtin(name: str) -> None:
    """Every error is an XPressError and the builtin that it is a kind of."""
    kind = getattr(errors, name)
    assert issubclass(kind, errors.XPressError)
    assert issubclass(kind, getattr(builtins, BUILTINS[name]))


def test_the_family_is_complete() -> None:
    """No error class is missing from the table above."""
    assert {*errors.__all__} == {*BUILTINS, "XPressError"}


def test_statistics_are_data() -> None:
    """Stats.as_dict is plain JSON with counts, seconds and rates that agree."""
    text = "abcdefghijklmnopqrstuvwxyz"
    model = stub_model(noisy(1), drafter=drafts("abc"))
    result = model.generate(PROMPT, xs.regex("xyz[a-z]{20}"), temperature=1.0, seed=9)
    data = json.loads(json.dumps(result.stats.as_dict()))
    assert data["output_tokens"] == len(result.token_ids) == 24
    assert data["forced"] == 4
    assert data["seed"] == 9
    assert data["acceptance"] == "coupled"
    assert data["drafter"] == "scripted"
    assert data["prompt_tokens"] == 1
    assert data["tokens_per_forward"] == pytest.approx(24 / data["forwards"])
    assert data["proposed"] == sum(data["proposed_by_slot"])
    assert data["accepted"] == sum(data["accepted_by_slot"])
    assert sum(data["rounds_by_accepted"]) == data["forwards"]
    assert 0 <= data["grammar_share"] <= 1
    assert 0 < data["first_token_s"] <= data["total_s"]
    assert data["peak_memory_bytes"] > 0
    assert writer(text).generate(PROMPT).stats.forwards == 27


def test_rates_of_nothing_are_zero() -> None:
    """A generation without forwards divides by nothing."""
    stats = Stats()
    assert stats.acceptance_rate == stats.acceptance_length == stats.tokens_per_s == 0
    assert stub_model(noisy(1)).generate(PROMPT, xs.regex("abc")).stats.forwards == 0


def test_a_result_shows_itself_shortly() -> None:
    """repr of a result is readable and does not generate or raise."""
    result = writer("abc").generate(PROMPT, max_new_tokens=2)
    assert "text='ab'" in repr(result)
    assert "length" in repr(result)
