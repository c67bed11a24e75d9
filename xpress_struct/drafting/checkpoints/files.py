"""The files of a checkpoint: config.json and safetensors, in a folder or on the Hugging Face hub."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from xpress_struct.errors import ArgumentError, ModelError, UnsupportedFeatureError

__all__ = ["MAX_SHARD_SIZE", "check_shard_size", "fetch", "fetch_config", "read_json", "read_tensors", "save"]

_CONFIG = "config.json"
_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")

MAX_SHARD_SIZE = "5GB"
"""Above this weights take several files, as in transformers."""


def fetch_config(source: str | Path, revision: str | None = None) -> dict[str, Any]:
    """The config.json of a checkpoint of any model, without its weights.

    Raises:
        ModelError: see `fetch`.
    """
    return read_json(fetch(source, revision, wanted=(_CONFIG,)))


def fetch(
    source: str | Path, revision: str | None, wanted: Sequence[str] = (_CONFIG, "*.safetensors", _INDEX)
) -> Path:
    """The folder of a checkpoint; a hub id is downloaded, config and safetensors only.

    Raises:
        ModelError: there is no such folder, or the download fails.
    """
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder
    if isinstance(source, Path) or folder.is_absolute() or source.startswith((".", "~")):
        raise ModelError(f"There is no folder {str(source)!r} with a drafter.")
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(source, revision=revision, allow_patterns=list(wanted), ignore_patterns="*/*")
        )
    except Exception as error:  # of the hub, of HTTP, of the file system
        raise ModelError(
            f"The drafter {source!r} cannot be fetched: {error}. Check the name and the connection (for a "
            "private repository: `hf auth login`), or pass a folder that holds it."
        ) from error


def read_json(folder: Path, name: str = _CONFIG) -> dict[str, Any]:
    """The content of a JSON file.

    Raises:
        ModelError: it is missing, or holds no JSON object.
    """
    try:
        content = json.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{str(folder)!r} has no readable {name}: {error}") from error
    if not isinstance(content, dict):
        raise ModelError(f"{name} in {str(folder)!r} holds no JSON object.")
    return content


def read_tensors(folder: Path, wanted: Callable[[str], bool], device: str) -> dict[str, Tensor]:
    """The tensors whose keys are wanted.

    Raises:
        ModelError: the files are missing or damaged.
        UnsupportedFeatureError: the weights are pickled.
    """
    from safetensors import SafetensorError, safe_open

    tensors: dict[str, Tensor] = {}
    for path in _weight_files(folder):
        try:
            with safe_open(path, framework="pt", device=device) as file:
                tensors.update({key: file.get_tensor(key) for key in file.keys() if wanted(key)})  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise ModelError(f"{str(path)!r} cannot be read: {error}. Fetch it again.") from error
    return tensors


def _weight_files(folder: Path) -> list[Path]:
    if (folder / _WEIGHTS).is_file():
        return [folder / _WEIGHTS]
    if (folder / _INDEX).is_file():
        shards = read_json(folder, _INDEX).get("weight_map", {}).values()
        return [folder / name for name in sorted(set(shards))]
    pickled = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLES)
    if pickled:
        raise UnsupportedFeatureError(
            f"{str(folder)!r} holds pickled weights ({pickled[0]}), which can run code when they are loaded, "
            f"so they are not read. Save them as {_WEIGHTS} with safetensors.torch.save_file.",
            feature="pickled weights",
        )
    raise ModelError(f"{str(folder)!r} has no {_WEIGHTS}. Only safetensors are read.")


def check_shard_size(size: int | str) -> None:
    """Checks a `max_shard_size`.

    Raises:
        ArgumentError: it is neither a positive number nor text like "16MB".
    """
    from huggingface_hub import split_torch_state_dict_into_shards

    try:
        if isinstance(size, str):
            split_torch_state_dict_into_shards({}, max_shard_size=size)
        elif size <= 0:
            raise ValueError
    except ValueError:
        raise ArgumentError(
            f"max_shard_size={size!r}: it must be a number of bytes, or text like '16MB' or '5GB'."
        ) from None


def save(
    folder: str | Path,
    config: dict[str, Any],
    tensors: dict[str, Tensor],
    max_shard_size: int | str = MAX_SHARD_SIZE,
) -> None:
    """Writes config.json and model.safetensors, or several files of weights and their index.

    What an earlier call wrote there is removed.

    Args:
        max_shard_size: bytes of tensors in a file, a number or text like "16MB"; a larger tensor has a file
            of its own.

    Raises:
        ArgumentError: see `check_shard_size`.
        ModelError: the folder cannot be written.
    """
    from huggingface_hub import save_torch_state_dict

    check_shard_size(max_shard_size)
    folder = Path(folder).expanduser()
    plain = {key: value.detach().contiguous() for key, value in tensors.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_torch_state_dict(plain, folder, max_shard_size=max_shard_size)
        (folder / _CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ModelError(f"The drafter cannot be written to {str(folder)!r}: {error}") from error
