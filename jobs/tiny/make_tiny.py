"""Makes a tiny random Qwen3 model with a real tokenizer: python make_tiny.py --out DIR."""
# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TEXTS = ("train.jsonl", "dpo.jsonl", "pt.jsonl")
MARK = "tiny.json"  # written first, so the folder is known as ours, and last, with every file and its size
WEIGHTS = "model.safetensors"
SEED = 20
VOCABULARY = 768
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
TEMPLATE = """{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}
{{- '<think>\\n\\n</think>\\n\\n' }}
{%- endif %}
{%- endif %}"""
# Qwen3's own pattern: words, single digits, punctuation and white space never share a token.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
HIDDEN, INNER, LAYERS, HEADS, KV_HEADS, HEAD_DIM = 128, 384, 2, 4, 2, 32


def main() -> int:
    """Leave a complete model in --out; one that is complete already is kept as it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=Path, help="folder of the model to be made")
    out: Path = parser.parse_args().out
    recipe = fingerprint()
    if is_complete(out, recipe):
        print(f"{out}: already complete")
        return 0
    if is_foreign(out):
        print(f"{out}: holds something else; give --out a new or an empty folder", file=sys.stderr)
        return 1
    try:
        make(out, recipe)
    except OSError as error:
        print(f"{out}: {error.strerror or error}; give --out a folder that can be written", file=sys.stderr)
        return 1
    print(f"{out}: made")
    return 0


def fingerprint() -> str:
    """Name what decides the model's bytes: this script and the texts of the tokenizer."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for name in TEXTS:
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()


def is_complete(out: Path, recipe: str) -> bool:
    """Say whether every file of this recipe is there in full."""
    try:
        mark = json.loads((out / MARK).read_text(encoding="utf-8"))
        sizes: dict[str, int] = mark["files"]
        return mark["recipe"] == recipe and all((out / n).stat().st_size == s for n, s in sizes.items())
    except (OSError, ValueError, KeyError):
        return False


def is_foreign(out: Path) -> bool:
    """Say whether the folder holds files and was never ours: a real model must not be overwritten."""
    return out.is_dir() and not (out / MARK).exists() and any(not is_part(path) for path in out.iterdir())


def is_part(path: Path) -> bool:
    return path.name.startswith(".") and path.name.endswith(".part")


def make(out: Path, recipe: str) -> None:
    """Write each file in one rename and the mark last, so a run that was interrupted can be repeated."""
    out.mkdir(parents=True, exist_ok=True)
    put(out / MARK, as_json({"recipe": None}))
    sizes = {}
    for name, content in files():
        put(out / name, content)
        sizes[name] = len(content)
    put(out / MARK, as_json({"recipe": recipe, "files": sizes}))


def put(path: Path, content: bytes) -> None:
    """Let the file appear with all of its content or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def files() -> Iterator[tuple[str, bytes]]:
    """Give the model's files by name."""
    tokenizer = train_tokenizer()
    ends = [tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")]
    yield "tokenizer.json", tokenizer.to_str(pretty=True).encode()
    yield "tokenizer_config.json", as_json(tokenizer_config())
    yield "config.json", as_json(config(*ends))
    yield (
        "generation_config.json",
        as_json({"do_sample": False, "eos_token_id": ends, "pad_token_id": ends[1], "max_new_tokens": 64}),
    )
    yield WEIGHTS, weights()


def as_json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def train_tokenizer() -> Any:
    """Train byte-level BPE on the texts, so nothing is unknown and each row is a few dozen tokens."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(SPECIAL),
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(texts(), trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return tokenizer


def texts() -> Iterator[str]:
    """Give every text that the tokenizer learns from."""
    for name in TEXTS:
        for line in (HERE / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            yield from (message["content"] for message in row["messages"])
            yield row.get("rejected_response", "")
    yield from ("user\n", "assistant\n", "system\n", "\n\n")


def tokenizer_config() -> dict[str, Any]:
    return {
        "tokenizer_class": "Qwen2Tokenizer",
        "model_max_length": 1024,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "bos_token": None,
        "unk_token": None,
        "additional_special_tokens": ["<|im_start|>", "<|im_end|>"],
        "clean_up_tokenization_spaces": False,
        "chat_template": TEMPLATE,
    }


def config(end: int, pad: int) -> dict[str, Any]:
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "max_position_embeddings": 1024,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "initializer_range": 0.02,
        "tie_word_embeddings": False,
        "use_cache": True,
        "torch_dtype": "float32",
        "eos_token_id": end,
        "pad_token_id": pad,
    }


def weights() -> bytes:
    """Draw every matrix from one seed, at the scale that keeps activations near one."""
    import numpy as np
    from safetensors.numpy import save

    draw = np.random.default_rng(SEED)
    tensors = {}
    for name, shape in shapes():
        if len(shape) == 1:
            tensors[name] = np.ones(shape, dtype=np.float32)
        else:
            scale = 1.0 if "embed" in name else shape[1] ** -0.5
            tensors[name] = (draw.standard_normal(shape) * scale).astype(np.float32)
    return bytes(save(tensors, metadata={"format": "pt"}))


def shapes() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Give each tensor's name and shape, as Qwen3ForCausalLM expects them."""
    yield "model.embed_tokens.weight", (VOCABULARY, HIDDEN)
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        yield f"{at}.input_layernorm.weight", (HIDDEN,)
        yield f"{at}.post_attention_layernorm.weight", (HIDDEN,)
        yield f"{at}.self_attn.q_proj.weight", (HEADS * HEAD_DIM, HIDDEN)
        yield f"{at}.self_attn.k_proj.weight", (KV_HEADS * HEAD_DIM, HIDDEN)
        yield f"{at}.self_attn.v_proj.weight", (KV_HEADS * HEAD_DIM, HIDDEN)
        yield f"{at}.self_attn.o_proj.weight", (HIDDEN, HEADS * HEAD_DIM)
        yield f"{at}.self_attn.q_norm.weight", (HEAD_DIM,)
        yield f"{at}.self_attn.k_norm.weight", (HEAD_DIM,)
        yield f"{at}.mlp.gate_proj.weight", (INNER, HIDDEN)
        yield f"{at}.mlp.up_proj.weight", (INNER, HIDDEN)
        yield f"{at}.mlp.down_proj.weight", (HIDDEN, INNER)
    yield "model.norm.weight", (HIDDEN,)
    yield "lm_head.weight", (VOCABULARY, HIDDEN)


if __name__ == "__main__":
    sys.exit(main())
