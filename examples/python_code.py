"""A Python function that goes on from its first lines.

python -m examples.python_code
"""

from __future__ import annotations

import ast

import xpress_struct as xs


def main() -> str:
    """Writes the function and returns its source, which `ast.parse` takes."""
    constraint = xs.code("python")
    out = xs.generate(
        "Write a Python function that returns the area of a rectangle.",
        constraint,
        prefix="def area(width, height):\n    return",
        max_new_tokens=40,
        on_limit="close",
    )
    ast.parse(out.value)
    print(out.value)
    return str(out.value)


if __name__ == "__main__":
    main()
