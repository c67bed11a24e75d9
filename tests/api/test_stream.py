"""Stream: closing, results, partial values."""

from __future__ import annotations

import json
import time

import pytest

import xpress_struct as xs
from tests.cases.scripts import PROMPT, drafts, noisy, writer
from tests.stubs import prefers, stub_model
from xpress_struct.errors import ArgumentError, IncompleteOutputError

DOCUMENT = {"name": 'A "quoted" é', "tags": ["x", "yz"], "n": 12, "ok": True, "in": {"k": None}}
TEXT = json.dumps(DOCUMENT, ensure_ascii=False)
ANY = xs.json_schema({})


def test_partial_is_the_value_so_far() -> None:
    """`partial` grows towards the value: open strings, lists and objects as far as they go."""
    with writer(TEXT).stream(PROMPT, ANY) as stream:
        states = []
        for _ in stream:
            states.append(stream.partial)
    assert stream.partial == stream.result.value == DOCUMENT
    seen = [state for state in states if state]
    assert all(isinstance(state, dict) for state in seen)
    sizes = [len(state) for state in seen]
    assert sizes == sorted(sizes)
    names = [state["name"] for state in seen if "name" in state]
    assert all(DOCUMENT["name"].startswith(name) for name in names)
    assert "A" in names


@pytest.mark.parametrize(("text", "partial"), [("not json", None), ("", None)])
def test_partial_of_other_text_is_none(text: str, partial: object) -> None:
    """Text that is no JSON has no partial value, and asking is no error."""
    with writer(text).stream(PROMPT) as stream:
        assert stream.partial is None
        for _ in stream:
            assert stream.partial is partial


def test_the_result_waits_for_the_end() -> None:
    """`result` before the end is an error that says what to do; afterwards it stays."""
    with writer(TEXT).stream(PROMPT, ANY) as stream:
        with pytest.raises(ArgumentError, match="read it to its end"):
            _ = stream.result
        next(iter(stream))
        with pytest.raises(ArgumentError):
            _ = stream.result
        for _ in stream:
            pass
        assert stream.result.value == DOCUMENT
    assert stream.result.finish_reason == "stop"


@pytest.mark.parametrize("after", [0, 1, 3])
def test_closing_early_stops_the_model(after: int) -> None:
    """Leaving the block stops the model: it is asked nothing more, and the result is cancelled."""
    model = stub_model(noisy(1))
    with model.stream(PROMPT, xs.regex("[a-z]{60}")) as stream:
        pieces = [piece for piece, _ in zip(stream, range(after), strict=False)]
        asked = len(model.target.seen)
    assert len(model.target.seen) == asked <= after + 1
    assert list(stream) == []
    assert len(model.target.seen) == asked
    result = stream.result
    assert result.finish_reason == "cancelled"
    assert result.text.startswith("".join(pieces))
    assert result.stats.output_tokens == len(result.token_ids)
    with pytest.raises(IncompleteOutputError):
        _ = result.value


def test_break_and_an_exception_stop_it_too() -> None:
    """`break` and an exception in the block leave a closed stream."""
    model = stub_model(noisy(1))
    stream = model.stream(PROMPT, xs.regex("[a-z]{60}"))

    def use() -> None:
        with stream:
            for _ in stream:
                raise KeyError("mine")

    with pytest.raises(KeyError):
        use()
    assert stream.result.finish_reason == "cancelled"
    with model.stream(PROMPT, xs.regex("[a-z]{60}")) as stream:
        for _ in stream:
            break
    asked = len(model.target.seen)
    assert stream.result.finish_reason == "cancelled"
    assert len(model.target.seen) == asked


def test_closing_twice_and_after_the_end_is_fine() -> None:
    """`close` may be called again; a finished result stays finished."""
    stream = writer(TEXT).stream(PROMPT, ANY)
    text = "".join(stream)
    stream.close()
    stream.close()
    assert stream.result.text == text == TEXT
    assert stream.result.finish_reason == "stop"


def test_nothing_runs_before_the_first_piece_is_asked_for() -> None:
    """Making a stream asks the model nothing."""
    model = stub_model(noisy(1))
    stream = model.stream(PROMPT, xs.regex("[a-z]{5}"))
    assert model.target.seen == []
    stream.close()
    assert model.target.seen == []


def test_iterating_goes_on_where_it_stopped() -> None:
    """A second loop over a stream goes on with the next piece."""
    stream = writer(TEXT, drafts("x")).stream(PROMPT, ANY)
    first = next(iter(stream))
    assert first + "".join(stream) == TEXT


def test_an_error_in_the_stream_comes_out_once() -> None:
    """What the model raises comes out of the loop, and the stream can be closed afterwards."""

    def broken(prefix: tuple[int, ...]) -> list[float]:
        if len(prefix) > 3:
            raise ValueError("model")
        return [0.0] * 257

    stream = stub_model(broken).stream(PROMPT, xs.regex("[a-c]{9}"))
    with pytest.raises(ValueError, match="model"):
        list(stream)
    stream.close()
    assert stream.result.finish_reason == "cancelled"


@pytest.mark.parametrize("budget", [1, 7, 500])
def test_a_cut_stream_has_its_result(budget: int) -> None:
    """A stream that the budget cuts ends quietly; its value raises."""
    with writer(TEXT).stream(PROMPT, ANY, max_new_tokens=budget) as stream:
        pieces = list(stream)
    assert "".join(pieces) == stream.result.text
    if budget < 500:
        assert stream.result.finish_reason == "length"
        with pytest.raises(IncompleteOutputError):
            _ = stream.result.value


def test_the_module_functions_take_a_model() -> None:
    """xs.generate, xs.generate_many and xs.generate_json take a Model."""
    model = stub_model(prefers("[1]"))
    schema = {"type": "array", "items": {"type": "integer"}}
    assert xs.generate(PROMPT, xs.json_schema(schema), model=model).value == [1]
    assert [r.value for r in xs.generate_many([PROMPT] * 2, ANY, model=model)] == [[1], [1]]
    assert xs.generate_json(PROMPT, list[int], model=model) == [1]


def test_the_module_function_streams() -> None:
    """xs.stream takes a Model."""
    with xs.stream(PROMPT, ANY, model=stub_model(prefers("[1]"))) as stream:
        assert "".join(stream) == "[1]"


def test_the_time_of_the_caller_is_not_the_models() -> None:
    """Seconds between pieces, in the caller's hands, do not count as generation."""
    with writer("abc").stream(PROMPT) as stream:
        for _ in stream:
            time.sleep(0.05)
    assert stream.result.stats.total_s < 0.1
    assert stream.result.stats.first_token_s <= stream.result.stats.total_s
