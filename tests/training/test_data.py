"""Prompts, what is held out, shards, and the responses in them."""

from __future__ import annotations

import json
import random
import re
import zipfile
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from tests.training.tiny import schema_of, tiny_model, tiny_prompts
from xpress_struct.errors import ArgumentError, ModelError
from xpress_struct.training.bfcl import bfcl_prompts
from xpress_struct.training.collect import collect, forced_places
from xpress_struct.training.features import LIKELIEST, FeatureCache
from xpress_struct.training.free_texts import BATCH, write_free
from xpress_struct.training.made_up import made_up_prompts
from xpress_struct.training.made_up.sql import sql_prompt
from xpress_struct.training.plan import Plan
from xpress_struct.training.prompts import CATEGORIES, constraint_of, write_own
from xpress_struct.training.reserved import RESERVED
from xpress_struct.training.shards import Document, append_shard, read_shards
from xpress_struct.training.sources import read_prompts
from xpress_struct.training.split import group_of, is_held_out
from xpress_struct.training.texts import code_documents


def document(key: str, *, length: int = 5, seed: int = 0) -> Document:
    rng = random.Random(f"{key} {seed}")
    return Document(
        key=key,
        category="calls",
        group="00ff00ff00ff00ff",
        held_out=False,
        grammar={"json_schema": {"type": "object", "title": "ünï"}},
        temperature=0.7,
        prompt=tuple(rng.randrange(60000) for _ in range(3)),
        response=tuple(rng.randrange(60000) for _ in range(length)),
        forced=tuple(rng.random() < 0.5 for _ in range(length)),
    )


def test_shards_append_and_read_back(tmp_path):
    """Documents come back as they were written, in order, over several shards; a repeated key counts once."""
    first, second = [document("a"), document("b", length=9)], [document("c"), document("a", seed=1)]
    append_shard(tmp_path, first, "v")
    append_shard(tmp_path, second, "v")
    (tmp_path / "shard-00002.unfinished").write_bytes(b"half a shard")
    found = read_shards([tmp_path], "v")
    assert [vars(each) for each in found] == [vars(each) for each in [*first, second[0]]]


def test_shards_of_another_vocabulary_are_refused(tmp_path):
    """Ids of another tokenizer are not trained on."""
    append_shard(tmp_path, [document("a")], "v")
    with pytest.raises(ModelError, match="another vocabulary"):
        read_shards([tmp_path], "w")


def test_damaged_shard_is_named(tmp_path):
    """A damaged shard is an error that names it."""
    (tmp_path / "shard-00000.npz").write_bytes(b"no zip")
    with pytest.raises(ModelError, match="shard-00000"):
        read_shards([tmp_path], "v")


def test_group_goes_by_the_schema_alone():
    """Words for readers and the order of keys do not make another schema; names of properties do."""
    schema = schema_of("x", "y")
    told = {"title": "T", "description": "d", **dict(reversed(list(schema.items())))}
    named = {"type": "object", "properties": {"description": {"type": "string"}}}
    assert group_of(schema) == group_of(told)
    assert group_of(schema) != group_of(schema_of("x", "z"))
    assert group_of(named) != group_of({"type": "object", "properties": {}})


def test_a_quarter_of_the_schemas_is_held_out():
    """A fixed quarter of all hashes is held out, and every schema of the benchmark's tasks."""
    share = sum(is_held_out(group_of(number)) for number in range(4000)) / 4000
    assert 0.22 < share < 0.28
    assert len(RESERVED) == 39 and all(map(is_held_out, RESERVED))


def test_no_group_is_trained_on_and_evaluated():
    """Over all made-up prompts, no group and no text stands on both sides."""
    prompts = made_up_prompts(150)
    sides = [[each for each in prompts if each.held_out is side] for side in (False, True)]
    for trait in (lambda each: each.group, lambda each: str(each.prompt)):
        assert not {trait(each) for each in sides[0]} & {trait(each) for each in sides[1]}
    assert {each.category for each in sides[1]} == set(CATEGORIES) - {"calls"}


def test_plan_keeps_shares_and_answers_held_out_prompts_greedily_once():
    """Documents keep their shares; held-out prompts are asked once and greedily; no job comes twice."""
    prompts = tiny_prompts(40) + made_up_prompts(30)
    jobs, counts = Plan(prompts), Counter()
    seen = []
    for _ in range(400):
        job = jobs.next(counts)
        counts[job.prompt.category] += 1
        seen.append(job)
    assert abs(counts["calls"] / 400 - 0.35) < 0.01 and abs(counts["chat"] / 400 - 0.10) < 0.01
    assert len({job.key for job in seen}) == 400
    held_out = [job for job in seen if job.prompt.held_out]
    assert held_out and all(job.temperature == 0 for job in held_out)
    assert len({job.prompt.id for job in held_out}) == len(held_out)
    assert {job.temperature for job in seen} == {0.0, 0.7, 1.0}


def test_collecting_goes_on_where_it_stopped(tmp_path):
    """Two calls give the documents of one, and none twice."""
    model, prompts = tiny_model(), tiny_prompts(12)
    collect(model, prompts, tmp_path / "two", documents=3, shard_size=2)
    counts = collect(model, prompts, tmp_path / "two", documents=6, shard_size=2)
    collect(model, prompts, tmp_path / "one", documents=6)
    two, one = (read_shards([tmp_path / name], model.vocabulary.fingerprint) for name in ("two", "one"))
    assert counts == {"calls": 6} and len({each.key for each in two}) == 6
    assert [each.response for each in two] == [each.response for each in one]


def free(count):
    """Prompts without a grammar, of different lengths."""
    made = tiny_prompts(count, category="code")
    return [replace(each, grammar=None, prompt="say " * (1 + i % 3)) for i, each in enumerate(made)]


def test_texts_without_a_grammar_are_written_together(tmp_path):
    """They come in batches: as many as asked for, each once, in both runs the same; and a response is what
    the target gives: a greedy one is, in spite of what fills the batch up, that of plain decoding."""
    model = tiny_model()
    counts = collect(model, free(60), tmp_path / "a", documents=70)
    collect(model, free(60), tmp_path / "b", documents=70)
    a, b = (read_shards([tmp_path / name], model.vocabulary.fingerprint) for name in "ab")
    assert counts == {"code": 70} and len({each.key for each in a}) == 70
    assert {each.key: each.response for each in a} == {each.key: each.response for each in b}
    assert all(sum(each.temperature == t for each in a) >= 10 for t in (0, 0.7, 1)) and len(a) > 2 * BATCH
    prompts = [model.vocabulary.encode(text) for text in ("a", "a long prompt", "some words")]
    cold = write_free(model, prompts, temperature=0, longest=12, seed=0)
    alone = [model.generate(ids, temperature=0, max_new_tokens=12).token_ids for ids in prompts]
    assert cold == alone


def test_texts_without_a_grammar_need_a_model_of_transformers():
    model = SimpleNamespace(target=SimpleNamespace())
    with pytest.raises(ArgumentError, match="written by a model of transformers; the target is a SimpleN"):
        write_free(model, [[1]], temperature=0, longest=4, seed=0)


def test_what_is_at_hand_counts_as_answered(tmp_path):
    """Where all prompts that fit have an answer elsewhere, those that do not fit are no reason to give up."""
    model, prompts = tiny_model(), tiny_prompts(8)
    long = [replace(each, id=f"{each.id} long", prompt="say " * 150) for each in tiny_prompts(150)]
    limit = 500
    collect(model, prompts, tmp_path / "a", documents=40, longest_prompt=limit)
    known = {each.key for each in read_shards([tmp_path / "a"], model.vocabulary.fingerprint)}
    counts = collect(model, [*prompts, *long], tmp_path / "b", documents=3, longest_prompt=limit, known=known)
    assert counts == {"calls": 3}


def test_collecting_says_when_nothing_can_be_answered(tmp_path):
    """Prompts that are all too long end in an error, not in an endless search."""
    with pytest.raises(ArgumentError, match="longer than 3 tokens"):
        collect(tiny_model(), tiny_prompts(6), tmp_path, documents=2, longest_prompt=3)


def test_recorded_features_are_those_of_a_second_reading(tmp_path):
    """What is kept while the target writes equals what one forward over the finished document shows."""
    model = tiny_model()
    cache = FeatureCache(model, tmp_path, (1, 2))
    collect(model, tiny_prompts(8), tmp_path, documents=4, features=cache)
    for each in read_shards([tmp_path], model.vocabulary.fingerprint):
        recorded, computed = cache.of(each), cache.compute(each)
        read = len(recorded.states)
        last = max(place for place, forced in enumerate(each.forced) if not forced)
        assert read >= len(each.prompt) + last
        torch.testing.assert_close(recorded.states, computed.states[:read], atol=2e-2, rtol=2e-2)
        torch.testing.assert_close(recorded.probabilities, computed.probabilities.float(), atol=2e-3, rtol=0)
        assert recorded.ids.shape == (len(each.response), LIKELIEST)
        assert torch.equal(recorded.ids[:, 0], computed.ids[:, 0].long())


def test_features_are_of_the_masked_distribution(tmp_path):
    """A forced place has one token with probability 1; no illegal token has any."""
    model = tiny_model()
    collect(model, tiny_prompts(8), tmp_path, documents=2)
    each = read_shards([tmp_path], model.vocabulary.fingerprint)[0]
    features = FeatureCache(model, tmp_path, (1,)).of(each)
    matcher, _ = constraint_of(each.grammar).matcher(model.vocabulary)
    for place, token in enumerate(each.response):
        given = features.ids[place][features.probabilities[place] > 0].tolist()
        assert all(map(matcher.legal, given))
        assert not each.forced[place] or given == [token]
        matcher.commit([token])
    assert any(each.forced) and not all(each.forced)


def test_forced_places_are_those_without_a_choice():
    """In a document with one key, the key is forced and the choice is not."""
    model = tiny_model()
    constraint = constraint_of({"json_schema": {"enum": ["xa", "xb"]}})
    response = model.vocabulary.encode('"xa"')
    assert forced_places(model, constraint, response) == (True, True, False, True)


def test_made_up_prompts_are_the_same_every_time_and_compile():
    """Two calls give the same prompts, more only adds, and every schema and grammar compiles."""
    some, more = made_up_prompts(6), made_up_prompts(8)
    assert {each.id: each for each in some}.items() <= {each.id: each for each in more}.items()
    assert Counter(each.category for each in some).keys() == {"extraction", "sql", "code", "chat"}
    for each in some:
        constraint = constraint_of(each.grammar)
        assert (constraint is None) == (each.category in ("code", "chat"))


def test_sql_prompts_are_over_their_tables():
    """The responses to a question over tables are single SELECT statements over these."""
    constraint = constraint_of(sql_prompt(random.Random(3), "x").grammar)
    tables = re.findall(r"CREATE TABLE (\w+) \((\w+)", sql_prompt(random.Random(3), "x").grammar["sql"])
    for table, column in tables:
        assert constraint.accepts(f"SELECT {column} FROM {table} WHERE {column} > 3;")
        assert not constraint.accepts(f"SELECT {column}s FROM {table};")
        assert not constraint.accepts(f"DELETE FROM {table};")


def test_prompt_file_reads_back(tmp_path):
    """Prompts written as JSON lines are read as they were."""
    prompts = [*tiny_prompts(5), *made_up_prompts(2)]
    # What sql and code are held out by stands in no file; their prompt's text serves.
    prompts = [
        replace(each, group=group_of(each.prompt)) if each.category != "calls" else each for each in prompts
    ]
    prompts = [each for each in prompts if each.category != "extraction"]
    write_own(prompts, tmp_path / "prompts.jsonl")
    assert read_prompts([tmp_path / "prompts.jsonl"]) == prompts


def test_sources_are_refused_with_a_reason(tmp_path):
    """An unknown source, a file without JSON and a line without a category are errors of ours."""
    (tmp_path / "words.txt").write_text("hello\n")
    (tmp_path / "rows.jsonl").write_text('{"id": "x", "prompt": "y"}\n')
    for source, match in (("nowhere", "neither"), ("words.txt", "no JSON lines"), ("rows.jsonl", "category")):
        with pytest.raises(ArgumentError, match=match):
            read_prompts([tmp_path / source])


def test_bfcl_functions_become_schemas(tmp_path):
    """A function becomes a schema of its call, several become a choice, and odd types are left out."""
    function = {
        "name": "area",
        "parameters": {
            "type": "dict",
            "properties": {"base": {"type": "float"}, "tags": {"type": "array", "items": {"type": "string"}}},
            "required": ["base"],
        },
    }
    odd = {"name": "odd", "parameters": {"type": "dict", "properties": {"x": {"type": "HashMap"}}}}
    ask = [[{"role": "user", "content": "hi"}]]
    rows = {
        "simple_python": [{"id": "s", "question": ask, "function": [function]}],
        "multiple": [
            {"id": "m", "question": ask, "function": [function, {**function, "name": "b"}]},
            {"id": "o", "question": ask, "function": [odd]},
        ],
        "parallel": [{"id": "p", "question": ask, "function": [function]}],
    }
    names = ["simple_python", "live_simple", "multiple", "live_multiple", "irrelevance", "live_irrelevance"]
    with zipfile.ZipFile(tmp_path / "bfcl.whl", "w") as archive:
        for name in [*names, "parallel", "live_parallel", "parallel_multiple"]:
            lines = "\n".join(map(json.dumps, rows.get(name, [])))
            archive.writestr(f"bfcl_eval/data/BFCL_v4_{name}.json", lines)
    one, several, many = (each.grammar["json_schema"] for each in bfcl_prompts(tmp_path / "bfcl.whl"))
    assert one["properties"]["name"] == {"const": "area"}
    assert one["properties"]["arguments"] == {
        "type": "object",
        "properties": {"base": {"type": "number"}, "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["base"],
        "additionalProperties": False,
    }
    assert several["anyOf"][0] == one and several["anyOf"][1]["properties"]["name"] == {"const": "b"}
    assert many == {"type": "array", "items": one, "minItems": 1}


def test_code_documents_are_the_functions_of_files(tmp_path):
    """Functions and methods come whole where they fit, the same ones each time; no file: a clear error."""
    body = "    return " + " + ".join(["a"] * 20)
    (tmp_path / "sums.py").write_text(f'"""Sums of things."""\n\nimport os\n\ndef one(a):\n{body}\n')
    (tmp_path / "broken.py").write_text("def (")
    (tmp_path / "test_sums.py").write_text(f"def two(a):\n{body}\n")
    model = tiny_model()
    found = code_documents(model, tmp_path, 5)
    assert [each.key for each in found] == ["code sums.py 0"]
    (only,) = found
    assert bytes(only.response).decode() == f"def one(a):\n{body}\n\n\n"
    assert b"Sums of things." in model.vocabulary.decode(only.prompt)
    assert not any(only.forced) and not only.held_out and only.grammar is None
    assert code_documents(model, tmp_path, 5)[0].response == only.response
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArgumentError, match="no Python functions"):
        code_documents(model, tmp_path / "empty", 5)
