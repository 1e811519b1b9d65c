"""Shows the trained, the served and the untouched base model's answers to trained prompts, side by side."""
# Runs with a stack's python: needs torch and transformers.
# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import argparse
import io
import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAX_TOKENS = 48


class NoAnswerError(Exception):
    """The served model did not answer; the text says why."""


def main() -> int:
    """End with 0 only when every served answer is the trained one and no answer of the base is."""
    options = parse()
    lines = options.train.read_text(encoding="utf-8").splitlines()[: options.rows]
    turns = [json.loads(line)["messages"][-2:] for line in lines]
    pairs = [(user["content"], assistant["content"]) for user, assistant in turns]
    if not pairs:
        print(f"{options.train}: no row to compare; give --train a data set with rows", file=sys.stderr)
        return 1
    try:
        served = [ask(options.url, options.model, prompt) for prompt, _ in pairs]
    except NoAnswerError as error:
        print(f"side by side: {error}", file=sys.stderr)
        return 1
    untouched = generate(options.base, [prompt for prompt, _ in pairs])
    wrong = list(show(pairs, served, untouched))
    for line in wrong:
        print(f"side by side: FAILED: {line}", file=sys.stderr)
    if not wrong:
        print(f"side by side: ok: {len(pairs)} of {len(pairs)} served as trained, none by the untouched base")
    return 1 if wrong else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True, help="folder of the base model")
    parser.add_argument("--train", required=True, type=Path, help="the data set that was trained on")
    parser.add_argument("--url", required=True, help="the endpoint, like http://127.0.0.1:8000")
    parser.add_argument("--model", required=True, help="the served model name")
    parser.add_argument("--rows", type=int, default=3, help="how many rows of the data set are asked")
    return parser.parse_args()


def ask(url: str, model: str, prompt: str) -> str:
    """Ask the served model over HTTP."""
    where = url.rstrip("/").removesuffix("/v1") + "/v1/chat/completions"
    messages = [{"role": "user", "content": prompt}]
    body = {"model": model, "messages": messages, "max_tokens": MAX_TOKENS, "temperature": 0}
    request = urllib.request.Request(where, json.dumps(body).encode(), {"Content-Type": "application/json"})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy cannot see 127.0.0.1
    try:
        with direct.open(request, timeout=60) as response:
            return str(json.load(response)["choices"][0]["message"]["content"])
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        why = error.read(300).decode(errors="replace") if isinstance(error, urllib.error.HTTPError) else error
        raise NoAnswerError(f"{where}: no answer ({why}); is the step that serves {model} READY?") from error


def generate(base: str, prompts: list[str]) -> list[str]:
    """Let the base model answer greedily, through its own chat template."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(base)
    model = AutoModelForCausalLM.from_pretrained(base)
    return [answer(model, tokenizer, prompt) for prompt in prompts]


def answer(model: Any, tokenizer: Any, prompt: str) -> str:
    messages = [{"role": "user", "content": prompt}]
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    inputs = tokenizer(text, return_tensors="pt", add_special_tokens=False)
    made = model.generate(**inputs, do_sample=False, max_new_tokens=MAX_TOKENS)
    return str(tokenizer.decode(made[0][inputs["input_ids"].shape[-1] :], skip_special_tokens=True))


def show(pairs: list[tuple[str, str]], served: list[str], untouched: list[str]) -> Iterator[str]:
    """Print each prompt's three answers below each other and give what is wrong."""
    for (prompt, trained), got, plain in zip(pairs, served, untouched, strict=True):
        same, learned = normalise(got) == normalise(trained), normalise(plain) != normalise(trained)
        print(f"prompt   {printable(prompt)}")
        print(f"trained  {printable(trained)}")
        print(f"served   {printable(got)}   [{'equal' if same else 'NOT EQUAL'}]")
        print(f"base     {printable(plain)}   [{'different' if learned else 'NOT DIFFERENT'}]\n")
        if not same:
            yield f"the served answer to {prompt!r} is not the trained one"
        if not learned:
            yield f"the untouched base answers {prompt!r} as trained: this proves nothing"


def normalise(text: str) -> str:
    """Take away the debris of the chat template: an empty think block and white space around."""
    return re.sub(r"<think>\s*</think>", "", text).strip()


def printable(text: str) -> str:
    """Fit an answer on one line of a terminal; a random model answers with control characters."""
    line = "".join(c if c.isprintable() else " " for c in normalise(text))
    return line if len(line) <= 90 else f"{line[:89]}…"


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an answer may hold what the locale cannot print
    sys.exit(main())
