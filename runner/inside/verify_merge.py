"""Verifies a merge: base plus adapter and the merged model must give the same logits."""
# Runs inside a stack's environment: needs torch, transformers and peft, imports nothing of ours.

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

# A merge adds scale*B*A to W and rounds once more. float32 keeps 24 bits: what remains is the order of
# summation, measured as 6e-6 of the largest logit. bfloat16 keeps 8 bits and float16 11, and the error
# grows with depth: 3e-2 and 3e-3 after 4 layers, 7e-2 and 1e-2 after 48 (measured; random weights).
TOLERANCES = {"float32": 1e-4, "bfloat16": 1e-1, "float16": 2e-2}
PROMPTS = (
    "What is an NPU, and which software stack does it need?",
    "请用一句话介绍昇腾处理器。",
    "def fibonacci(n):\n    return n if n < 2 else",
)
# How much of the adapter's own effect must be found in the merged model (1 is all of it).
SHARE = (0.5, 1.5)


class VerifyError(Exception):
    """The comparison could not be made; the text says why and what to do."""


@dataclass(frozen=True)
class Verdict:
    """What verify.json says."""

    ok: bool
    message: str
    max_abs_diff: float | None = None
    max_rel_diff: float | None = None
    tolerance: float | None = None
    adapter_effect: float | None = None  # like max_rel_diff, between the untouched base and base plus adapter
    adapter_share: float | None = None  # None: the adapter's effect is lost in rounding
    argmax_agreement: float | None = None
    dtype: str | None = None
    device: str | None = None
    prompts: tuple[str, ...] = ()
    schema: str = "verify/1"


def main() -> int:
    """Write the verdict, say it in one line, and end with 0 only when the merge is right."""
    options = parse()
    try:
        verdict = verify(options)
    except VerifyError as error:
        verdict = Verdict(ok=False, message=str(error), tolerance=options.tolerance)
    write(options.out, asdict(verdict))
    print(f"verify merge: {'ok' if verdict.ok else 'FAILED'}: {verdict.message}", flush=True)
    return 0 if verdict.ok else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--adapter", required=True, type=Path, help="the checkpoint that was merged")
    add("--merged", required=True, type=Path, help="the merged model")
    add("--out", required=True, type=Path, help="where the verdict is written as JSON")
    add("--base", help="the base model; without it the one that the checkpoint names")
    add("--tolerance", type=float, help="largest logit difference over the largest logit")
    add("--prompt", action="append", help="a text to compare on; may be repeated")
    return parser.parse_args()


def verify(options: argparse.Namespace) -> Verdict:
    """Compare the two ways to get a logit; one model is in memory at a time."""
    adapter = adapter_folder(options.adapter)
    if not (options.merged / "config.json").is_file():
        raise VerifyError(f"{options.merged}: no config.json; --merged takes the folder of a whole model")
    args = read(options.adapter / "args.json")
    base = options.base or base_model(args, adapter)
    prompts = tuple(options.prompt or PROMPTS)
    tokens = tokenize(options.merged, prompts)
    dtype, device = dtype_of(options.merged), pick_device()
    loader = Loader(dtype, device, args)
    plain, tuned = logits_with_adapter(loader.load(base), adapter, options.merged, tokens)
    release()
    merged = logits_of(loader.load(str(options.merged)), tokens)
    tolerance = TOLERANCES[dtype] if options.tolerance is None else options.tolerance
    verdict = judge(Logits(plain, tuned, merged), tolerance)
    message = f"{verdict.message} ({dtype} on {device}, base {base})"
    return replace(verdict, message=message, dtype=dtype, device=device, prompts=prompts)


@dataclass(frozen=True)
class Logits:
    """One row of logits for each token of the prompts: of base, base plus adapter, and merged model."""

    plain: Any
    tuned: Any
    merged: Any


def judge(logits: Logits, tolerance: float) -> Verdict:
    """Decide whether the merged model is the one that was trained."""
    plain, tuned, merged = logits.plain, logits.tuned, logits.merged
    if tuned.shape != merged.shape:
        wide = f"{tuned.shape[-1]} logits with the adapter, {merged.shape[-1]} merged"
        raise VerifyError(f"the vocabularies differ: {wide}; was it merged into another base?")
    top = float(tuned.abs().max()) or 1.0
    gap = float((merged - tuned).abs().max())
    effect = float((tuned - plain).abs().max()) / top
    share = adapter_share(logits)
    ok = gap / top <= tolerance  # false for NaN too
    message = f"largest logit difference {gap / top:.1e} of the largest logit, tolerance {tolerance:.0e}"
    if not ok:
        message += "; this is not the model that was trained, merge the adapter into its own base again"
    elif share is None:
        message += f"; the adapter's own effect ({effect:.1e}) cannot be told from rounding on these prompts"
    elif not SHARE[0] <= share <= SHARE[1]:
        ok = False
        message += f"; but {share:.2f} of the adapter's effect was merged, not all of it: merge again"
    return Verdict(
        ok=ok,
        message=message,
        max_abs_diff=finite(gap),
        max_rel_diff=finite(gap / top),
        tolerance=tolerance,
        adapter_effect=finite(effect),
        adapter_share=share,
        argmax_agreement=float((merged.argmax(-1) == tuned.argmax(-1)).float().mean()),
    )


def adapter_share(logits: Logits) -> float | None:
    """Project what merging changed onto what the adapter changes: 1 all of it, 0 the untouched base.

    A small adapter stays inside a low-precision tolerance, merged or not; this tells the two apart.
    """
    wanted, got = logits.tuned - logits.plain, logits.merged - logits.plain
    size = float((wanted * wanted).sum())
    if not size > 0:
        return None
    share = float((wanted * got).sum()) / size
    rest = got - share * wanted
    resolved = float((rest * rest).sum()) < size / 4
    return share if resolved else None


def finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None  # JSON has no NaN


def adapter_folder(checkpoint: Path) -> Path:
    """Find the adapter in a checkpoint; ms-swift accepts it in a folder `default` too."""
    for folder in (checkpoint, checkpoint / "default"):
        if (folder / "adapter_config.json").is_file():
            return folder
    raise VerifyError(f"{checkpoint}: no adapter_config.json; --adapter takes a LoRA checkpoint-<n> folder")


def base_model(args: dict[str, Any], adapter: Path) -> str:
    """Name the base model that the checkpoint was trained on, as a local folder when there is one."""
    config = read(adapter / "adapter_config.json")
    names = [config.get("base_model_name_or_path"), args.get("model_dir"), args.get("model")]
    named = [str(name) for name in names if name]
    if not named:
        raise VerifyError(f"{adapter}: no base model in adapter_config.json or args.json; give --base")
    for name in named:
        if Path(name).is_dir():
            return name
    if named[-1].startswith((".", "/")):
        raise VerifyError(f"{named[-1]}: the base model of {adapter} is not there any more; give --base")
    return named[-1] if args.get("use_hf") else from_modelscope(named[-1], args.get("model_revision"))


def from_modelscope(hub_id: str, revision: str | None) -> str:
    """Give the cached folder of a ModelScope model, where ms-swift put it."""
    try:
        from modelscope import snapshot_download

        return str(snapshot_download(hub_id, revision=revision, local_files_only=True))
    except Exception as error:
        raise VerifyError(f"{hub_id}: not in the ModelScope cache ({excerpt(error)}); give --base") from error


def read(path: Path) -> dict[str, Any]:
    """Give a JSON object, or an empty one when the file is not there."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise VerifyError(f"{path}: not JSON ({error}); the checkpoint is damaged") from error
    return value if isinstance(value, dict) else {}


def pick_device() -> str:
    """Use the NPU when this stack can reach one, else the CPU."""
    try:
        import torch
        import torch_npu  # noqa: F401 - registers torch.npu

        return "npu" if torch.npu.is_available() else "cpu"
    except (ImportError, OSError, RuntimeError):  # no plugin, or a plugin without its driver or CANN
        return "cpu"


def dtype_of(merged: Path) -> str:
    """Name the dtype that the merged model is stored and served in."""
    name = setting(merged, "dtype") or setting(merged, "torch_dtype")
    return str(name) if name in TOLERANCES else "float32"


def setting(model: Path, key: str) -> Any:
    """Give a value of config.json; a multi-modal model keeps it under text_config."""
    config = read(model / "config.json")
    return config.get(key) or (config.get("text_config") or {}).get(key)


def tokenize(merged: Path, prompts: tuple[str, ...]) -> list[Any]:
    """Turn each prompt into a row of token ids with the merged model's own tokenizer."""
    try:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(str(merged), trust_remote_code=True)
        rows = [tokenizer(prompt, return_tensors="pt")["input_ids"] for prompt in prompts]
    except Exception as error:
        raise VerifyError(f"{merged}: its tokenizer does not load ({excerpt(error)})") from error
    rows = [row for row in rows if row.shape[-1]]
    if not rows:
        raise VerifyError("the prompts hold no token; give another --prompt")
    return rows


@dataclass(frozen=True)
class Loader:
    """Loads models in one dtype on one device, as what the training arguments say they are."""

    dtype: str
    device: str
    args: dict[str, Any]

    def load(self, model: str) -> Any:
        """Load with the first class that takes the model; code in its folder runs, as it did in training."""
        import torch
        import transformers

        transformers.utils.logging.disable_progress_bar()
        key = "dtype" if int(transformers.__version__.split(".")[0]) >= 5 else "torch_dtype"
        wanted: dict[str, Any] = {key: getattr(torch, self.dtype), "trust_remote_code": True}
        if self.device != "cpu":
            wanted["device_map"] = "auto"
        names = ["AutoModelForCausalLM", "AutoModelForImageTextToText"]
        if self.args.get("task_type") == "seq_cls":
            names, wanted["num_labels"] = ["AutoModelForSequenceClassification"], self.args["num_labels"]
        tried = []
        for name in names:
            try:
                return getattr(transformers, name).from_pretrained(model, **wanted).eval()
            except Exception as error:  # noqa: BLE001 - every class refuses in its own way; the next may not
                tried.append(f"{name}: {excerpt(error)}")
        raise VerifyError(f"{model}: does not load; {'; '.join(tried)}")


def logits_with_adapter(model: Any, adapter: Path, merged: Path, tokens: list[Any]) -> tuple[Any, Any]:
    """Give the logits of the untouched base and of base plus adapter."""
    vocabulary = setting(merged, "vocab_size")
    try:
        from peft import PeftModel

        if vocabulary and vocabulary != model.get_input_embeddings().weight.shape[0]:
            model.resize_token_embeddings(vocabulary)  # it was trained with new_special_tokens
        tuned = PeftModel.from_pretrained(model, str(adapter)).eval()
    except Exception as error:
        raise VerifyError(f"{adapter}: does not load on its base ({excerpt(error)})") from error
    with tuned.disable_adapter():
        plain = logits_of(tuned, tokens)
    return plain, logits_of(tuned, tokens)


def logits_of(model: Any, tokens: list[Any]) -> Any:
    """Run the prompts one by one and give all their logits as float32 rows on the CPU."""
    import torch

    rows = []
    with torch.no_grad():
        for row in tokens:
            out = model(input_ids=row.to(model.device), attention_mask=torch.ones_like(row).to(model.device))
            rows.append(out.logits.float().cpu().reshape(-1, out.logits.shape[-1]))
    return torch.cat(rows)


def release() -> None:
    """Give the first model's memory back before the second one is loaded."""
    gc.collect()
    npu = getattr(sys.modules.get("torch"), "npu", None)
    if npu is not None and npu.is_available():
        npu.empty_cache()


def excerpt(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}"


def write(out: Path, verdict: dict[str, Any]) -> None:
    """Let the verdict appear whole or not at all."""
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    part.write_text(json.dumps(verdict, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(out)


if __name__ == "__main__":
    sys.exit(main())
