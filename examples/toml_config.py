"""A configuration in TOML, from a grammar that is shipped.

python -m examples.toml_config
"""

from __future__ import annotations

import json

import xpress_struct as xs

SETTINGS = {"server": {"host": "127.0.0.1", "port": 8080}, "logging": {"level": "info", "file": "server.log"}}


def main() -> str:
    """Writes the file and returns its text, which parses whatever the model says."""
    request = f"Rewrite this JSON as TOML.\n\n{json.dumps(SETTINGS)}"
    out = xs.generate(request, xs.lark("toml"), prefix="[server]\n", max_new_tokens=60, on_limit="close")
    print(out.text)
    print(f"\n# {out.finish_reason}; {out.stats.forced} of {out.stats.output_tokens} tokens were forced")
    return out.text


if __name__ == "__main__":
    main()
