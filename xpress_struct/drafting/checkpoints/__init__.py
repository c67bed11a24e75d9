"""Checkpoints of block-diffusion drafters: the published formats and our own."""

from xpress_struct.drafting.checkpoints.checkpoint import read_checkpoint, write_checkpoint

__all__ = ["read_checkpoint", "write_checkpoint"]
