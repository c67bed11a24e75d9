"""What a request may say: bodies, fields, constraints; each refusal is in OpenAI's shape."""

from __future__ import annotations

import json
import sys

import pytest

from tests.server.serving import babbles, events, in_process, model_of, slow, wants

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
TEXT = '{"name": "Ada", "age": 36}'
TOOL = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}


@pytest.fixture(scope="module")
def server():
    with in_process(
        model_of(wants(TEXT, "yes", "2024")), max_body_bytes=50_000, max_tokens=64, compile_timeout=60
    ) as found:
        yield found


def refused(answer, code=None):
    """The status and the error, whose shape is checked."""
    status, body = answer
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert body["error"]["type"] == ("server_error" if status >= 500 else "invalid_request_error")
    assert code in (None, body["error"]["code"])
    return status, body["error"]


def deep(levels):
    return b'{"model": ' + b"[" * levels + b"]" * levels + b"}"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (json.dumps({"model": "tiny", "x": "y" * 2_000_000}).encode(), 413, "request_too_large"),
        (deep(70), 400, "invalid_json"),
        (deep(20_000), 400, "invalid_json"),
        (b'{"model": "\xff\xfe"}', 400, "invalid_json"),
        (b'{"model": "\\ud800"}', 400, "invalid_json"),
        (b'{"model": NaN}', 400, "invalid_json"),
        (b'{"model": ' + b"9" * 5000 + b"}", 400, "invalid_json"),
        (b'{"model": ', 400, "invalid_json"),
        (b"", 400, "invalid_json"),
        (b"[]", 400, "invalid_json"),
        (b"{}", 400, "invalid_value"),
    ],
    ids=["large", "deep", "deeper", "utf8", "surrogate", "nan", "digits", "cut", "empty", "list", "nothing"],
)
def test_hostile_bodies_are_refused_and_the_next_request_works(server, body, status, code):
    """A hostile body gets its 4xx, and the server answers the next request as ever."""
    assert refused(server.post("/v1/chat/completions", body), code)[0] == status
    assert server.chat(max_tokens=3)[0] == 200


def test_a_body_in_chunks_is_counted(server):
    """A body that does not tell its length is refused where it grows too large."""

    async def chunks():
        for _ in range(100):
            yield b" " * 1000

    status, error = refused(server._send(
        "POST", "/v1/completions", content=chunks(), headers={"Content-Type": "application/json"}
    ))  # fmt: skip
    assert (status, error["code"]) == (413, "request_too_large")


def test_other_content_types_are_refused(server):
    """A web page cannot post a form to the server."""
    told = server.post("/v1/completions", b"{}", headers={"Content-Type": "text/plain"})
    assert refused(told)[0] == 415


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"guided_json": {}}, "guided_json", "unknown_parameter"),
        ({"frequency_penalty": 0.5}, "frequency_penalty", "unsupported_parameter"),
        ({"logit_bias": {"5": 1}}, "logit_bias", "unsupported_parameter"),
        ({"functions": []}, "functions", "unsupported_parameter"),
        ({"max_tokens": 65}, "max_tokens", "invalid_value"),
        ({"max_tokens": 3, "max_completion_tokens": 4}, "max_tokens", "invalid_value"),
        ({"max_tokens": "3"}, "max_tokens", "invalid_value"),
        ({"n": 17, "temperature": 1}, "n", "invalid_value"),
        ({"n": 2}, "n", "invalid_value"),
        ({"temperature": -1}, None, "invalid_value"),
        ({"stop": [""]}, None, "invalid_value"),
        ({"top_logprobs": 2}, "top_logprobs", "invalid_value"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "invalid_value"),
        ({"messages": []}, "messages", "invalid_value"),
        ({"messages": [{"role": "user"}]}, "messages.0.content", "invalid_value"),
        ({"messages": [{"role": "tool", "content": "3"}]}, "messages.0.tool_call_id", "invalid_value"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", "invalid_value"),
        ({"response_format": {"type": "xml"}}, "response_format.type", "invalid_value"),
        (
            {"response_format": {"type": "json_object"}, "structured_outputs": {"regex": "a"}},
            "structured_outputs",
            "invalid_value",
        ),
        ({"structured_outputs": {}}, "structured_outputs", "invalid_value"),
        ({"structured_outputs": {"regex": "a", "choice": ["a"]}}, "structured_outputs", "invalid_value"),
        (
            {"structured_outputs": {"structural_tag": "x"}},
            "structured_outputs.structural_tag",
            "unknown_parameter",
        ),
        ({"structured_outputs": {"regex": "(?=a)"}}, "structured_outputs.regex", "unsupported_feature"),
        ({"structured_outputs": {"regex": "("}}, "structured_outputs.regex", "invalid_grammar"),
        ({"structured_outputs": {"json": "{"}}, "structured_outputs.json", "invalid_json"),
        ({"structured_outputs": {"json": '"x.json"'}}, "structured_outputs.json", "invalid_json_schema"),
        ({"structured_outputs": {"json": {"type": 3}}}, "structured_outputs.json", "invalid_json_schema"),
        ({"structured_outputs": {"grammar": "start: x"}}, "structured_outputs.grammar", "invalid_grammar"),
        ({"tool_choice": "required"}, "tool_choice", "invalid_value"),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}},
            "tool_choice",
            "invalid_value",
        ),
        ({"tools": [TOOL, TOOL]}, "tools", "invalid_value"),
        ({"tools": [{"type": "web_search"}]}, "tools.0.type", "invalid_value"),
        (
            {"tools": [TOOL], "response_format": {"type": "json_object"}},
            "response_format",
            "unsupported_parameter",
        ),
    ],
    ids=lambda value: None if isinstance(value, dict) else str(value),
)
def test_what_is_not_served_is_refused_by_name(server, fields, param, code):
    """A field that cannot be honoured is a 400 that names it."""
    status, error = refused(server.chat(**fields), code)
    assert (status, error["param"]) == (400, param)


def test_neutral_and_harmless_fields_are_taken(server):
    """Fields that change nothing, or ask for nothing, are no reason to refuse."""
    status, body = server.chat(
        user="u",
        metadata={"a": "b"},
        store=True,
        frequency_penalty=0,
        logit_bias=None,
        n=None,
        response_format={"type": "text"},
    )
    assert (status, body["choices"][0]["message"]["content"]) == (200, TEXT)


def test_another_model_is_not_found(server):
    """A request for a model that is not served is a 404."""
    assert refused(server.chat(model="gpt"), "model_not_found")[0] == 404
    assert refused(server.get("/v1/models/gpt"), "model_not_found")[0] == 404
    assert server.get("/v1/models/tiny")[1]["id"] == "tiny"


def test_unknown_paths_are_in_the_same_shape(server):
    """A wrong path is a 404, a wrong method a 405."""
    assert refused(server.get("/v1/nothing"))[0] == 404
    assert refused(server.get("/v1/completions"))[0] == 405


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"json": SCHEMA}, TEXT),
        ({"json": json.dumps(SCHEMA)}, TEXT),
        ({"regex": "[0-9]{4}"}, "2024"),
        ({"choice": ["no", "yes"]}, "yes"),
        ({"grammar": 'start: "yes" | "no"\n'}, "yes"),
        ({"grammar": "json"}, TEXT),
        ({"grammar": "start: DIGIT DIGIT DIGIT DIGIT\n%import common.DIGIT\n"}, "2024"),
    ],
    ids=["json", "json text", "regex", "choice", "grammar", "shipped", "import"],
)
@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_structured_outputs(server, path, asked, text):
    """Both endpoints enforce every kind of structure."""
    prompt = "<|im_start|>assistant\n"
    question = {"prompt": prompt} if "chat" not in path else {"messages": [{"role": "user", "content": "Q"}]}
    body = {"model": "tiny", "temperature": 0, "max_tokens": 40, "structured_outputs": asked, **question}
    status, told = server.post(path, body)
    choice = told["choices"][0]
    assert (status, choice["finish_reason"]) == (200, "stop")
    assert (choice["text"] if "chat" not in path else choice["message"]["content"]) == text


@pytest.mark.parametrize(
    "grammar",
    [
        "start: x\n%import .secret.x\n",
        "start: x\n%import   \\\n .secret.x\n",
        "secret.lark",
        "/etc/passwd",
        "./secret.lark",
    ],
)
def test_no_file_is_read_for_a_grammar(server, monkeypatch, tmp_path, grammar):
    """A grammar from the network is text: files beside the main module and in the folder stay closed."""
    (tmp_path / "secret.lark").write_text('start: x\nx: "yes"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(tmp_path / "main.py"), raising=False)
    status, error = refused(server.chat(structured_outputs={"grammar": grammar}))
    assert (status, error["param"]) == (400, "structured_outputs.grammar")


@pytest.mark.parametrize("reference", ["http://127.0.0.1:9/s.json", "file:///etc/passwd", "other.json"])
def test_no_address_is_followed_for_a_schema(server, reference):
    """A reference to another document is refused, not fetched."""
    told = server.chat(structured_outputs={"json": {"properties": {"a": {"$ref": reference}}}})
    assert refused(told, "invalid_json_schema")[0] == 400


def test_a_schema_that_fills_the_prompt_is_refused():
    """A schema that is too long to be shown is a 400."""
    schema = {"type": "null", "description": "x" * 300_000}
    shown = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    with in_process(model_of(babbles)) as server:
        status, error = refused(server.chat(response_format=shown), "constraint_too_large")
    assert (status, error["param"], "characters" in error["message"]) == (400, "response_format", True)


def test_a_schema_whose_references_double_is_answered(server):
    """Forty definitions that each name the next twice, 2**40 copies if written out, are shown as they are."""
    inner = {
        f"d{i}": {"type": "array", "prefixItems": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)
    }
    schema = {"$ref": "#/$defs/d0", "$defs": inner | {"d40": {"type": "null"}}}
    shown = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    assert server.chat(response_format=shown, max_tokens=2)[0] == 200


def test_a_constraint_that_takes_too_long_is_refused():
    """A constraint that is not compiled at the time limit is a 400, and with time the next one compiles."""
    with in_process(model_of(babbles), compile_timeout=1e-6) as server:
        for pattern in ("a{3}b", "a{3}b", "a{4}b"):
            told = server.chat(structured_outputs={"regex": pattern})
            status, error = refused(told, "constraint_too_large")
            assert (status, "more than 1e-06 s" in error["message"]) == (400, True)
        server.app.state.service._checker._timeout = 60
        assert server.chat(structured_outputs={"choice": ["yes"]})[0] == 200


def test_a_failed_final_check_is_told():
    """What the mask cannot enforce is checked after; when every attempt fails, the answer is an error."""
    items = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
    schema = {"type": "object", "properties": {"a": {**items, "uniqueItems": True}}, "required": ["a"]}
    schema["additionalProperties"] = False
    with in_process(model_of(wants('{"a": [1, 1]}'))) as server:
        assert refused(server.chat(structured_outputs={"json": schema}), "output_validation")[0] == 500


def test_a_full_server_says_so():
    """With no place left, a request is turned away with 503 and told when to come again."""
    with in_process(model_of(babbles), max_requests=1) as server:
        service = server.app.state.service
        with service.place():
            assert refused(server.chat(max_tokens=2), "overloaded")[0] == 503
        assert server.chat(max_tokens=2)[0] == 200


def test_the_time_limit_ends_an_answer():
    """An answer that takes too long is a 504, not half a document."""
    with in_process(model_of(slow(babbles, 0.05)), timeout=0.3) as server:
        assert refused(server.chat(max_tokens=1000), "timeout")[0] == 504


def test_a_failure_of_ours_tells_nothing_of_the_inside(caplog):
    """An unexpected error is a 500 without its text, which is in the log."""

    def broken(prefix):
        raise ZeroDivisionError("secret")

    with in_process(model_of(broken)) as server:
        status, error = refused(server.chat(), "internal_error")
    assert (status, "secret" in error["message"], "secret" in caplog.text) == (500, False, True)


def test_thoughts_come_apart_from_the_content():
    """With enable_thinking, thoughts are `reasoning_content`, whole and in a stream, and the answer fits."""
    asked = {
        "chat_template_kwargs": {"enable_thinking": True},
        "response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": SCHEMA}},
        "max_tokens": 128,
    }
    with in_process(model_of(wants(f"<think>\nhm {{</think>\n\n{TEXT}"))) as found:
        status, body = found.chat(**asked)
        message = body["choices"][0]["message"]
        assert (status, message["reasoning_content"], message["content"]) == (200, "hm {", TEXT)
        _, streamed = found.chat(**asked, stream=True)
        deltas = [event["choices"][0]["delta"] for event in events(streamed)[:-1]]
        for name, whole in (("reasoning_content", "hm {"), ("content", TEXT)):
            assert "".join(delta.get(name) or "" for delta in deltas) == whole
        later = [{"role": "user", "content": "Q"}, message, {"role": "user", "content": "Q"}]
        assert found.chat(**asked, messages=later)[0] == 200
        assert "reasoning_content" not in found.chat()[1]["choices"][0]["message"]
        assert refused(found.chat(chat_template_kwargs={"date": "now"}))[0] == 400
