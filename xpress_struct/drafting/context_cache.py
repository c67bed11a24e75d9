"""Keys and values that a drafter's layers hold of a request's committed tokens."""

from __future__ import annotations

from torch import Tensor

__all__ = ["ContextCache"]

_LEAST_CAPACITY = 64


class ContextCache:
    """The context of one request, for all layers. It is written in place, so it is for inference only.

    A block's own keys and values stand behind the context for one forward; the next one writes over
    them.

    Args:
        window: only the latest `window` context tokens are kept; None keeps all.

    Attributes:
        length: context tokens held.
        end: absolute position behind the last of them.
    """

    def __init__(self, window: int | None = None) -> None:
        self.window = window
        self.length = 0
        self.end = 0
        self._first = 0
        self._stop = 0
        self._buffers: Tensor | None = None

    @property
    def capacity(self) -> int:
        """Tokens that the buffers have room for."""
        return 0 if self._buffers is None else self._buffers.shape[3]

    def extend(self, new: int, block: int, start: int, shape: tuple[int, int, int], like: Tensor) -> int:
        """Takes in the context tokens of a forward, whose keys and values `write` then brings.

        Args:
            new: context tokens in front of the block.
            block: tokens of the block.
            start: absolute position of the block.
            shape: layers, kv heads, head_dim.
            like: a tensor of the keys' dtype and device.

        Returns:
            How many of the new tokens are kept: the latest ones that fit the window.

        Raises:
            RuntimeError: the new tokens do not follow those held.
        """
        if self.length and start != self.end + new:
            raise RuntimeError(f"{new} context tokens before {start} do not follow those up to {self.end}")
        kept = new if self.window is None else min(new, self.window)
        dropped = 0 if self.window is None else max(self.length + kept - self.window, 0)
        self._first += dropped
        held = self.length - dropped
        needed = held + kept + block
        if self._first + needed > self.capacity:
            self._move(held, needed, shape, like)
        self.length, self.end, self._stop = held + kept, start, self._first + needed
        return kept

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Writes what one layer computed for the tokens kept and the block.

        Args:
            keys, values: [1, kv heads, kept + block, head_dim].

        Returns:
            Keys and values of the whole context and the block, [1, kv heads, length + block, head_dim];
            views that hold until the next `extend`.
        """
        assert self._buffers is not None
        rows = self._buffers[:, layer, None, :, self._first : self._stop]
        added = keys.shape[-2]
        rows[0, :, :, -added:] = keys
        rows[1, :, :, -added:] = values
        return rows[0], rows[1]

    def _move(self, held: int, needed: int, shape: tuple[int, int, int], like: Tensor) -> None:
        """Moves the tokens held to the front of buffers with room; half full ones keep their size."""
        capacity = self.capacity
        if 2 * needed > capacity:
            capacity = max(2 * capacity, needed, _LEAST_CAPACITY)
        layers, heads, width = shape
        buffers = like.new_empty(2, layers, heads, capacity, width)
        if self._buffers is not None:
            buffers[..., :held, :] = self._buffers[..., self._first : self._first + held, :]
        self._buffers, self._first = buffers, 0
