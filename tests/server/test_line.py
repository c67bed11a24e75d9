"""The line before the model: many clients at once, clients that leave, and what the counters say of them."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import jsonschema
import openai
import pytest

from tests.server.serving import babbles, in_process, model_of, on_a_port, slow

QUESTION = [{"role": "user", "content": "Q"}]
ROUND = 0.2

SCHEMAS = [
    {"type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "boolean"}},
     "required": ["a", "b"], "additionalProperties": False},
    {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99},
     "minItems": 1, "maxItems": 3},
    {"type": "object", "properties": {"s": {"type": "string", "maxLength": 6}},
     "required": ["s"], "additionalProperties": False},
]  # fmt: skip


@pytest.mark.slow
def test_eight_clients_at_once_get_valid_answers():
    """8 clients with 20 requests each, some streamed, at several temperatures: each answer is valid."""
    model = model_of(babbles)

    def client(number, url):
        texts = []
        with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
            for turn in range(20):
                schema = SCHEMAS[(number + turn) % 3]
                options = {
                    "model": "tiny",
                    "messages": QUESTION,
                    "temperature": turn % 3 / 2,
                    "seed": 100 * number + turn,
                    "response_format": {
                        "type": "json_schema",
                        "json_schema": {"name": "x", "schema": schema},
                    },
                }
                if turn % 2:
                    pieces = client.chat.completions.create(**options, stream=True)
                    text = "".join(piece.choices[0].delta.content or "" for piece in pieces)
                else:
                    text = client.chat.completions.create(**options).choices[0].message.content
                jsonschema.validate(json.loads(text), schema)
                texts.append(text)
        return texts

    with on_a_port(model) as url, ThreadPoolExecutor(8) as pool:
        told = list(pool.map(client, range(8), [url] * 8))
        metrics = httpx.get(url.replace("/v1", "/metrics")).text
    assert [len(texts) for texts in told] == [20] * 8
    assert 'xpress_requests_total{path="/v1/chat/completions",status="200"} 160.0' in metrics
    assert 'xpress_choices_total{reason="stop"} 160.0' in metrics


def wait_for(condition, seconds=5.0):
    until = time.perf_counter() + seconds
    while not condition():
        assert time.perf_counter() < until
        time.sleep(0.005)


@pytest.fixture
def plodding():
    """A server whose rounds take long: its address, and the rounds so far."""
    model = model_of(slow(babbles, ROUND))
    with on_a_port(model) as url:
        yield url, model.target.seen


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_frees_the_model(plodding, stream):
    """When the client goes, no more than the round under way and one more run, and the next is served."""
    url, rounds = plodding
    body = {"model": "tiny", "messages": QUESTION, "max_tokens": 1000, "stream": stream}
    with httpx.Client() as client:
        if stream:
            with client.stream("POST", f"{url}/chat/completions", json=body) as response:
                next(response.iter_lines())
        else:
            with pytest.raises(httpx.ReadTimeout):
                client.post(f"{url}/chat/completions", json=body, timeout=3 * ROUND)
    left = len(rounds)
    metrics = url.replace("/v1", "/metrics")
    wait_for(lambda: "xpress_requests_running 0.0" in httpx.get(metrics).text)
    assert 0 < left <= len(rounds) <= left + 1
    started = time.perf_counter()
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as again:
        done = again.chat.completions.create(model="tiny", messages=QUESTION, max_tokens=1)
    assert done.usage.completion_tokens == 1
    assert time.perf_counter() - started < 10 * ROUND
    assert 'xpress_choices_total{reason="cancelled"} 1.0' in httpx.get(metrics).text


def test_a_client_in_the_line_leaves_it(plodding):
    """Who goes while waiting is never decoded, and its place is free at once."""
    url, rounds = plodding
    body = {"model": "tiny", "messages": QUESTION, "max_tokens": 6}
    metrics = url.replace("/v1", "/metrics")
    with httpx.Client(timeout=30) as client, ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.post, f"{url}/chat/completions", json=body)
        wait_for(lambda: rounds)
        with pytest.raises(httpx.ReadTimeout):
            client.post(f"{url}/chat/completions", json=body, timeout=ROUND)
        wait_for(lambda: "xpress_requests_waiting 0.0" in httpx.get(metrics).text)
        assert not first.done()
        assert first.result().status_code == 200
    assert len(rounds) == 6


def test_one_request_decodes_at_a_time():
    """Requests that come together are decoded one after another, none between the rounds of another."""
    model = model_of(slow(babbles, 0.02))

    def ask(url, text):
        httpx.post(f"{url}/completions", json={"model": "tiny", "prompt": text, "max_tokens": 4}, timeout=30)

    with on_a_port(model) as url, ThreadPoolExecutor(3) as pool:
        list(pool.map(ask, [url] * 3, ["aa", "bb", "cc"]))
    sent = [bytes(ids) if len(ids) == 2 else None for ids, _ in model.target.seen]
    assert sorted(sent[::4]) == [b"aa", b"bb", b"cc"]
    assert len(sent) == 12 and not any(sent[i] for i in range(12) if i % 4)


def test_health_and_counters():
    """/health follows the worker; /metrics counts tokens, forwards and times in the text format."""
    with in_process(model_of(babbles)) as server:
        assert server.get("/health") == (200, {"status": "ok"})
        status, body = server.chat(max_tokens=9, n=2, temperature=1, seed=3)
        told = server.get("/metrics")[1]
        service = server.app.state.service
    counted = dict(line.rsplit(" ", 1) for line in told.splitlines() if not line.startswith("#"))
    assert status == 200
    assert float(counted["xpress_output_tokens_total"]) == body["usage"]["completion_tokens"] == 18
    assert float(counted["xpress_forwards_total"]) == 18
    assert float(counted["xpress_tokens_per_forward_count"]) == 2
    assert float(counted["xpress_tokens_per_forward_sum"]) == 2
    for name, times in (("request", 1), ("queue", 1), ("compile", 0)):
        assert float(counted[f"xpress_{name}_seconds_count"]) == times
    for name in ("decode", "first_token"):
        assert float(counted[f"xpress_{name}_seconds_count"]) == 2
    assert not service.worker.alive
    assert not any(thread.name == "xpress-struct-worker" for thread in threading.enumerate())
