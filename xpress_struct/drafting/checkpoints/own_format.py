"""config.json of our own checkpoints: every field of DiffusionConfig, by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from xpress_struct.drafting.checkpoints.layers import layer_fields, read_layers
from xpress_struct.drafting.config import DiffusionConfig, HeadConfig, TrainedOn
from xpress_struct.errors import ModelError

__all__ = ["OWN_TYPE", "own_fields", "read_own"]

OWN_TYPE = "xpress_struct_drafter"
_VERSION = 1


def own_fields(config: DiffusionConfig) -> dict[str, Any]:
    """The content of config.json."""
    plain = {field.name: getattr(config, field.name) for field in fields(config)}
    return {
        "model_type": OWN_TYPE,
        "version": _VERSION,
        **plain,
        "layers": layer_fields(config.layers),
        "head": asdict(config.head) if config.head else None,
        "trained_on": asdict(config.trained_on),
    }


def read_own(content: Mapping[str, Any]) -> DiffusionConfig:
    """The config in a config.json of ours.

    Raises:
        ModelError: it was written by a later version, or is malformed.
    """
    plain = {name: value for name, value in content.items() if name not in ("model_type", "version")}
    if content.get("version") != _VERSION:
        raise ModelError(
            f"The drafter's config.json has the version {content.get('version')!r}; this library reads "
            f"{_VERSION}. Update xpress-struct."
        )
    try:
        layers, taps = read_layers(plain.pop("layers")), tuple(plain.pop("taps"))
        head, trained_on = plain.pop("head"), TrainedOn(**plain.pop("trained_on"))
        head = HeadConfig(**head) if head else None
        return DiffusionConfig(layers=layers, taps=taps, head=head, trained_on=trained_on, **plain)
    except (KeyError, TypeError) as error:
        raise ModelError(f"The drafter's config.json is malformed: {error}") from error
