"""Prompts made up from lists: small, seeded, and as many as are asked for."""

from xpress_struct.training.made_up.prompts import made_up_prompts

__all__ = ["made_up_prompts"]
