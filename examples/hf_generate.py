"""`generate` of transformers with one more argument.

python -m examples.hf_generate
"""

from __future__ import annotations

import json

import xpress_struct as xs
from xpress_struct.integrations.transformers import XPressGenerate

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "country": {"type": "string"}, "capital": {"type": "boolean"}},
    "required": ["city", "country", "capital"],
    "additionalProperties": False,
}


def main() -> dict[str, object]:
    """Generates with a model and a tokenizer of transformers, and returns the object."""
    embedded = xs.load()
    model, tokenizer = embedded.target.model, embedded.tokenizer  # any causal model and its tokenizer

    messages = [{"role": "user", "content": "Describe Paris as a JSON object: city, country, capital."}]
    inputs = tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    decode = XPressGenerate(xs.json_schema(SCHEMA), tokenizer=tokenizer)
    ids = model.generate(**inputs, max_new_tokens=60, custom_generate=decode)

    text = tokenizer.decode(ids[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    print(text)
    return dict(json.loads(text))


if __name__ == "__main__":
    main()
