"""agenerate, agenerate_json, astream: the same as their plain twins, and what cancelling does."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import xpress_struct as xs
from tests.cases.scripts import PROMPT, drafts, noisy, writer
from tests.stubs import stub_model
from xpress_struct.errors import ArgumentError, IncompleteOutputError, UnknownArgumentError

LONG = xs.regex("[a-z]{200}")


class Gated:
    """Logits whose first round tells that it runs, and waits at a gate."""

    def __init__(self) -> None:
        self._asked, self._gate = threading.Event(), threading.Event()
        self._logits = noisy(1)

    def __call__(self, prefix: tuple[int, ...]) -> list[float]:
        self._asked.set()
        assert self._gate.wait(30)
        return self._logits(prefix)

    async def begun(self) -> None:
        """Returns when the round runs."""
        while not self._asked.is_set():
            await asyncio.sleep(0.001)

    async def open(self) -> None:
        """Lets the round end, when what was asked of the event loop before has been done."""
        for _ in range(10):
            await asyncio.sleep(0)
        self._gate.set()


def stays_quiet(model: xs.Model) -> bool:
    """Whether the model is asked nothing more."""
    asked = len(model.target.seen)
    time.sleep(0.05)
    return len(model.target.seen) == asked


def streams() -> int:
    return sum(thread.name.startswith("xpress-struct-stream") for thread in threading.enumerate())


async def no_streams() -> bool:
    """Whether the threads of streams end."""
    for _ in range(200):
        if not streams():
            return True
        await asyncio.sleep(0.01)
    return False


def test_many_at_once_equal_those_one_by_one() -> None:
    """Concurrent calls give the ids of plain calls, and the event loop goes on meanwhile."""
    model = stub_model(noisy(2), drafter=drafts("ab"))
    asked = [{"seed": seed, "temperature": 1.0, "max_new_tokens": 20} for seed in range(6)]
    ticks = []

    async def tick() -> None:
        while True:
            ticks.append(1)
            await asyncio.sleep(0.001)

    async def go() -> list[xs.Generation]:
        ticking = asyncio.create_task(tick())
        found = await asyncio.gather(*(model.agenerate(PROMPT, LONG, **each) for each in asked))
        ticking.cancel()
        return found

    found = asyncio.run(go())
    assert [each.token_ids for each in found] == [
        model.generate(PROMPT, LONG, **each).token_ids for each in asked
    ]
    assert len({each.token_ids for each in found}) == 6
    assert len(ticks) > 1


def test_json_gives_the_value() -> None:
    """agenerate_json returns the typed value."""
    assert asyncio.run(writer("[1, 2]").agenerate_json(PROMPT, list[int])) == [1, 2]


def test_cancelling_stops_the_model() -> None:
    """When the cancellation comes out, the model has stopped, after the round that ran."""
    gated = Gated()
    model = stub_model(gated)

    async def go() -> None:
        task = asyncio.create_task(model.agenerate(PROMPT, LONG))
        await gated.begun()
        task.cancel()
        await gated.open()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(model.target.seen) == 1
        assert stays_quiet(model)

    asyncio.run(go())


def test_a_timeout_of_asyncio_stops_it_too() -> None:
    """`asyncio.wait_for` cancels a generation that takes too long."""
    logits = noisy(1)

    def slow(prefix: tuple[int, ...]) -> list[float]:
        time.sleep(0.01)
        return logits(prefix)

    model = stub_model(slow)
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(asyncio.wait_for(model.agenerate(PROMPT, LONG), 0.05))
    assert stays_quiet(model)
    assert len(model.target.seen) < 200


def test_an_event_of_the_caller_still_counts() -> None:
    """The option `cancel` ends an awaited generation, whose result is then cut."""
    stop, gated = threading.Event(), Gated()
    model = stub_model(gated)

    async def go() -> xs.Generation:
        task = asyncio.create_task(model.agenerate(PROMPT, LONG, cancel=stop))
        await gated.begun()
        stop.set()
        await gated.open()
        return await task

    result = asyncio.run(go())
    assert result.finish_reason == "cancelled"
    assert len(result.token_ids) == len(model.target.seen) == 1


def test_a_call_that_waits_for_a_thread_is_cancelled_at_once() -> None:
    """Cancelling a call that no thread has begun does not wait for one, and asks the model nothing."""
    model, gate = writer("abc"), threading.Event()

    async def go() -> None:
        loop = asyncio.get_running_loop()
        taken = [loop.run_in_executor(None, gate.wait) for _ in range(64)]
        task = asyncio.create_task(model.agenerate(PROMPT))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 5)
        gate.set()
        await asyncio.gather(*taken)

    asyncio.run(go())
    assert model.target.seen == []


def test_errors_come_through() -> None:
    """Errors of the arguments and of the model are raised where the call is awaited."""

    def broken(prefix: tuple[int, ...]) -> list[float]:
        raise ValueError("model")

    async def streamed(model: xs.Model, *arguments: object, **options: object) -> None:
        async with model.astream(*arguments, **options) as stream:
            async for _ in stream:
                pass

    for call in (lambda model, *a, **o: model.agenerate(*a, **o), streamed):
        with pytest.raises(ValueError, match="model"):
            asyncio.run(call(stub_model(broken), PROMPT))
        with pytest.raises(UnknownArgumentError, match="seed"):
            asyncio.run(call(writer("a"), PROMPT, seeed=1))
        with pytest.raises(ArgumentError, match=r"threading\.Event"):
            asyncio.run(call(writer("a"), PROMPT, cancel=True))
        with pytest.raises(ArgumentError, match="prompt has the id"):
            asyncio.run(call(writer("a"), [9999]))
    with pytest.raises(IncompleteOutputError):
        asyncio.run(writer("[1]").agenerate_json(PROMPT, list[int], max_new_tokens=1))


def test_a_stream_gives_the_pieces() -> None:
    """astream gives the pieces, partial values and result of stream, and its thread ends."""
    text = '{"a": "xyz", "b": [1, 2]}'
    with writer(text).stream(PROMPT, xs.json_schema({})) as plain:
        wanted = [(piece, plain.partial) for piece in plain]

    async def go() -> xs.Generation:
        async with writer(text).astream(PROMPT, xs.json_schema({})) as stream:
            found = [(piece, stream.partial) async for piece in stream]
            assert found == wanted
            assert stream.text == text
            assert stream.token_ids == stream.result.token_ids
        assert await no_streams()
        return stream.result

    result = asyncio.run(go())
    assert result.finish_reason == "stop"
    assert result.value == {"a": "xyz", "b": [1, 2]}


def test_leaving_a_stream_stops_the_model() -> None:
    """Behind the block the model is asked nothing, the result is cancelled, and nothing more comes."""
    model = stub_model(noisy(1))

    async def go() -> xs.Generation:
        async with model.astream(PROMPT, LONG) as stream:
            async for _ in stream:
                break
        assert [piece async for piece in stream] == []
        await stream.aclose()
        assert await no_streams()
        return stream.result

    assert asyncio.run(go()).finish_reason == "cancelled"
    assert len(model.target.seen) == 1


def test_cancelling_a_stream_stops_the_model() -> None:
    """Cancelling the task that reads a stream stops the model after the round that ran."""
    gated = Gated()
    model = stub_model(gated)

    async def read() -> None:
        async with model.astream(PROMPT, LONG) as stream:
            try:
                async for _ in stream:
                    pass
            finally:
                results.append(stream)

    async def go() -> None:
        task = asyncio.create_task(read())
        await gated.begun()
        task.cancel()
        await gated.open()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(model.target.seen) == 1
        assert stays_quiet(model)
        assert await no_streams()

    results: list = []
    asyncio.run(go())
    assert results[0].result.finish_reason == "cancelled"


def test_a_buffered_stream_gives_one_piece() -> None:
    """buffered=True gives the whole text at once; what is checked after generation needs it."""
    checked = xs.json_schema({"type": "array", "uniqueItems": True, "items": {}})
    assert checked.checked_after

    async def go(**options: bool) -> list[str]:
        async with writer("[1, 2]").astream(PROMPT, checked, **options) as stream:
            return [piece async for piece in stream]

    assert asyncio.run(go(buffered=True)) == ["[1, 2]"]
    with pytest.raises(xs.XPressError, match="buffered"):
        asyncio.run(go())


def test_a_stream_needs_its_block() -> None:
    """Reading a stream that was not entered is an error that says so."""

    async def go() -> None:
        async for _ in writer("a").astream(PROMPT):
            pass

    with pytest.raises(ArgumentError, match="async with"):
        asyncio.run(go())
