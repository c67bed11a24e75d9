"""`xpress-struct serve`: what it loads, what it bounds, and what it says when the extra is missing."""

from __future__ import annotations

import sys

import pytest

from tests.server.serving import babbles, model_of
from xpress_struct.cli import main as cli
from xpress_struct.server.limits import Limits


@pytest.fixture
def run(monkeypatch):
    """Runs the command without a socket; gives what was loaded, and what would be served where."""

    seen = {}

    def load(model, *, drafter):
        seen["loaded"] = (model, drafter)
        return model_of(babbles)

    monkeypatch.setattr("xpress_struct.api.load", load)
    monkeypatch.setattr("uvicorn.run", lambda app, **options: seen.update(app=app, **options))

    def serve(*arguments):
        seen["code"] = cli.main(["serve", *arguments])
        if "app" in seen:
            seen["service"] = seen["app"].state.service
            seen["service"].close()
        return seen

    return serve


def test_the_embedded_model_is_the_default(run, capsys):
    """Without arguments the embedded model is served, to this machine alone, with the usual bounds."""
    seen = run()
    assert (seen["code"], seen["loaded"]) == (0, (None, "auto"))
    assert (seen["host"], seen["port"], seen["service"].name) == ("127.0.0.1", 8000, "default")
    assert seen["service"].limits == Limits()
    out, err = capsys.readouterr()
    assert (out, "http://127.0.0.1:8000/v1" in err) == ("", True)


def test_arguments_reach_the_server(run):
    """Model, drafter, name, address and every bound are passed on."""
    seen = run(
        *("--model", "m", "--drafter", "lookup", "--name", "n", "--host", "0.0.0.0", "--port", "9"),
        *("--max-requests", "1", "--max-body-bytes", "2", "--max-depth", "3", "--max-tokens", "4"),
        *("--max-choices", "5", "--timeout", "6", "--body-timeout", "7", "--compile-timeout", "8"),
    )
    assert seen["loaded"] == ("m", "lookup")
    assert (seen["host"], seen["port"], seen["service"].name) == ("0.0.0.0", 9, "n")
    assert seen["service"].limits == Limits(1, 2, 3, 4, 5, 6.0, 7.0, 8.0)


def test_a_bad_bound_is_refused(run, capsys):
    """A bound of 0 is an error that names it."""
    assert run("--max-tokens", "0")["code"] == 1
    assert "max_tokens=0" in capsys.readouterr().err


def test_a_missing_extra_is_named(run, monkeypatch, capsys):
    """Without the extra, the message says what to install."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert run()["code"] == 1
    assert 'pip install "xpress-struct[server]"' in capsys.readouterr().err
