"""Worker: builds an Outlines index, so that its parent can give up on it. Imports no torch.

A thread that builds an index can't be stopped, a process can. Reads one JSON object from stdin
(`schema` as text, `whitespace`, `end_id`, `tokens`: text -> ids) and exits 0 when the index was built.
"""

from __future__ import annotations

import json
import sys

MEMORY = 12 << 30


def main() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    except (ImportError, ValueError, OSError):  # Windows has none; a lower limit may be in force
        pass
    from outlines_core import Index, Vocabulary
    from outlines_core.json_schema import build_regex_from_schema

    given = json.load(sys.stdin)
    regex = build_regex_from_schema(given["schema"], given["whitespace"])
    Index(regex, Vocabulary(given["end_id"], given["tokens"]))


if __name__ == "__main__":
    main()
