from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.report import made_up
from tests.lab.report.chromium import NAMES, Chromium, find
from xpress_struct.lab.report.write import write_report


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a made-up benchmark."""
    folder = made_up.bench(
        tmp_path_factory.mktemp("runs") / "bench", documents=5, categories=("json", "code")
    )
    return write_report(folder)[0]


@pytest.fixture(scope="session")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a made-up experiment."""
    return write_report(made_up.experiment(tmp_path_factory.mktemp("runs") / "experiment", documents=3))[0]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """A headless Chromium; in CI there must be one."""
    if find() is None:
        why = (
            f"no Chromium: `make test` fetches one (Linux, x86_64); else PATH has none of {', '.join(NAMES)}"
        )
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    found = Chromium(tmp_path_factory.mktemp("chromium"))
    yield found
    found.close()
