"""Documents of a random tiny model under the masks of real schemas: does every returned value validate?

    python -m benchmarks.random_documents --schemas json_schemas.jsonl --limit 500 --documents 2

The model has random weights, bytes for tokens, and is sampled at temperature 1, so it goes wherever the mask
lets it. Texts are closed at the token limit (on_limit="close"). Each value is validated once more here, by
jsonschema, independently of the library. Prints what happened and ends with one line `RESULT {json}`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path

import jsonschema
import torch
from tqdm import tqdm

import xpress_struct as xs
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import IncompleteOutputError, OutputValidationError, XPressError
from xpress_struct.model import Model
from xpress_struct.target.target import TransformersTarget

END = 256


def random_model(seed: int) -> Model:
    """A Llama of a few thousand random weights over 256 bytes and an end token."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=END + 1,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=4096,
        bos_token_id=None,
        eos_token_id=END,
        pad_token_id=None,
        initializer_range=0.6,
    )
    tokens = [bytes([i]) for i in range(END)] + [b""]
    vocabulary = Vocabulary.from_tokens(tokens, end_ids=[END])
    return Model(TransformersTarget(LlamaForCausalLM(config)), None, vocabulary, None)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.random_documents", description=__doc__.split("\n\n")[0])
    parser.add_argument("--schemas", required=True, help="JSON lines with id and schema")
    parser.add_argument("--limit", type=int, default=500, help="schemas, drawn at random")
    parser.add_argument("--documents", type=int, default=2, help="documents of each schema")
    parser.add_argument("--max-new-tokens", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)

    rows = [json.loads(line) for line in Path(given.schemas).read_text(encoding="utf-8").splitlines()]
    random.Random(given.seed).shuffle(rows)
    model = random_model(given.seed)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    started = time.perf_counter()
    for row in tqdm(rows[: given.limit], file=sys.stderr):
        counts["schemas"] += 1
        try:
            constraint = xs.json_schema(row["schema"])
        except XPressError as error:
            counts[f"not compiled: {type(error).__name__}"] += 1
            continue
        judge = jsonschema.validators.validator_for(row["schema"], default=jsonschema.Draft202012Validator)
        for place in range(given.documents):
            counts["documents"] += 1
            try:
                out = model.generate(
                    [1],
                    constraint,
                    temperature=1.0,
                    seed=given.seed * 1000 + place,
                    max_new_tokens=given.max_new_tokens,
                    on_limit="close",
                )
                value = out.value
            except IncompleteOutputError:
                counts["cut: no way of closing fitted the budget"] += 1
                continue
            except OutputValidationError:
                counts["error after retries"] += 1
                counts["retried"] += 1
                continue
            except XPressError as error:
                counts[f"error: {type(error).__name__}"] += 1
                wrong.append(f"{row['id']}: {error}")
                continue
            counts["returned"] += 1
            counts["closed at the limit"] += out.finish_reason == "closed"
            counts["retried"] += out.stats.retries > 0
            if not judge(row["schema"]).is_valid(value):
                counts["returned and not valid"] += 1
                wrong.append(f"{row['id']}: {out.text}")
    for name, count in counts.items():
        print(f"{name:50}{count:>8}")
    for line in wrong[:20]:
        print(line[:300])
    documents = counts["documents"] or 1
    result = {
        "documents": counts["documents"],
        "returned": counts["returned"],
        "returned_invalid": counts["returned and not valid"],
        "retry_share": round(counts["retried"] / documents, 5),
        "seconds": round(time.perf_counter() - started, 1),
    }
    print("RESULT " + json.dumps(result))


if __name__ == "__main__":
    main()
