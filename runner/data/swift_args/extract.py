"""Read the arguments of every ms-swift command out of the packages' source, without importing any of it.

Importing is impossible for megatron without transformer_engine and takes 7 s for the rest, so this does on
syntax trees what `dataclasses.fields` and transformers' `HfArgumentParser` do. Standard library only.

    python -m runner.data.swift_args.extract --ms-swift 4.6.0 --transformers 5.19.0 --trl 0.29.1 --out FILE
    (downloads two wheels; `--source SITE_PACKAGES` reads a folder with the unpacked packages instead)
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.data.swift_args.syntax import Class, Member, Module, Source, Unknown, declared

COMMANDS = {
    "pt": "swift.arguments.PretrainArguments",
    "sft": "swift.arguments.SftArguments",
    "rlhf": "swift.arguments.RLHFArguments",
    "export": "swift.arguments.ExportArguments",
    "infer": "swift.arguments.InferArguments",
    "deploy": "swift.arguments.DeployArguments",
    "rollout": "swift.arguments.RolloutArguments",
    "eval": "swift.arguments.EvalArguments",
    "app": "swift.arguments.AppArguments",
    "megatron pt": "swift.megatron.arguments.MegatronPretrainArguments",
    "megatron sft": "swift.megatron.arguments.MegatronSftArguments",
    "megatron rlhf": "swift.megatron.arguments.MegatronRLHFArguments",
    "megatron export": "swift.megatron.arguments.MegatronExportArguments",
}
GENERICS = {"List": "list", "Dict": "dict"}


@dataclass(frozen=True)
class Hint:
    """A type annotation: a head such as `int`, `Union`, `Literal`, `Enum`, and what is in its brackets."""

    head: str
    args: tuple[Any, ...] = ()


def main(argv: list[str] | None = None) -> int:
    """Write one table; exit code 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for package in ("ms-swift", "transformers", "trl"):
        parser.add_argument(f"--{package}", required=True, help="its version")
    parser.add_argument("--source", type=Path, help="a folder with the unpacked packages; default: download")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(argv)
    key = {"ms_swift": given.ms_swift, "transformers": given.transformers, "trl": given.trl}
    if given.source:
        table = extract(given.source, key)
    else:
        with tempfile.TemporaryDirectory() as folder:
            # trl is part of the key only: no command inherits a dataclass of trl
            download(Path(folder), f"ms-swift=={given.ms_swift}", f"transformers=={given.transformers}")
            table = extract(Path(folder), key)
    given.out.write_text(render(table), encoding="utf-8")
    return 0


def download(folder: Path, *requirements: str) -> None:
    """Unpack the wheels of the requirements into one folder, without their dependencies."""
    wheels = folder / "wheels"
    flags = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]
    subprocess.run(
        [sys.executable, "-m", "pip", "download", *flags, "-d", str(wheels), *requirements], check=True
    )
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)


def extract(source: Path, key: dict[str, str]) -> dict[str, Any]:
    """The table of all commands; arguments that several commands have in the same form stand in one group."""
    code = Source(source)
    reader = Reader(code)
    having: dict[str, dict[str, Any]] = {}
    for command, path in COMMANDS.items():
        module, _, name = path.rpartition(".")
        found = code.resolve(code.module(module), name)
        if not isinstance(found, Class):
            raise SystemExit(f"{source}: there is no class {path}; is this ms-swift {key['ms_swift']}?")
        for argument, spec in reader.arguments(found).items():
            form = json.dumps([argument, spec], sort_keys=True)
            entry = having.setdefault(form, {"name": argument, "spec": spec, "commands": []})
            entry["commands"].append(command)
    groups: dict[tuple[str, ...], dict[str, Any]] = {}
    for entry in having.values():
        groups.setdefault(tuple(entry["commands"]), {})[entry["name"]] = entry["spec"]
    order = {command: i for i, command in enumerate(COMMANDS)}
    ranked = sorted(groups, key=lambda g: (-len(g), [order[c] for c in g]))
    listed = [{"commands": list(g), "arguments": dict(sorted(groups[g].items()))} for g in ranked]
    return {"table": "swift-args/1", **key, "commands": list(COMMANDS), "groups": listed}


def render(table: dict[str, Any]) -> str:
    """JSON with one argument a line, so that versions can be compared with diff."""

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    head = [f"{text(k)}: {text(v)}" for k, v in table.items() if k != "groups"]
    groups = []
    for group in table["groups"]:
        lines = ",\n".join(f"{text(k)}: {text(v)}" for k, v in group["arguments"].items())
        groups.append(f'{{"commands": {text(group["commands"])}, "arguments": {{\n{lines}\n}}}}')
    return "{\n" + ",\n".join(head) + ',\n"groups": [\n' + ",\n".join(groups) + "\n]\n}\n"


class Reader:
    """Follows HfArgumentParser on syntax trees."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def arguments(self, cls: Class) -> dict[str, dict[str, Any]]:
        """What `HfArgumentParser` makes of a dataclass: name -> type, nargs, choices, default."""
        hints: dict[str, Hint] = {}
        for part in reversed(self._source.mro(cls)):
            hints.update({k: self.hint(n.annotation, part.module) for k, n in declared(part.node)})
        made = {}
        for name, member in self._source.fields(cls).items():
            call = _field_call(member.node.value)
            if "init" not in call or self._source.value(call["init"], member.owner) is not False:
                made[name] = self._argument(hints[name], member, call)
        return made

    def hint(self, node: ast.expr, module: Module) -> Hint:
        """The annotation as a value, with aliases and imports followed."""
        match node:
            case ast.Constant(value=None):
                return Hint("None")
            case ast.Constant(value=str() as text):
                return self.hint(ast.parse(text, mode="eval").body, module)
            case ast.BinOp(op=ast.BitOr()):
                return _union(self.hint(node.left, module), self.hint(node.right, module))
            case ast.Subscript():
                return self._generic(node, module)
        found = self._source.follow(node, module)
        if isinstance(found, Class):
            return self._class_hint(found)
        if isinstance(found, tuple) and isinstance(found[1], ast.Assign):
            return self.hint(found[1].value, found[0])
        name = found if isinstance(found, str) else ast.unparse(node)
        name = name.rpartition(".")[2]
        return Hint(GENERICS.get(name, name))

    def _generic(self, node: ast.Subscript, module: Module) -> Hint:
        head = self.hint(node.value, module).head
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if head == "Literal":
            return Hint("Literal", tuple(self._source.constant(e, module, {}) for e in inner))
        args = [self.hint(e, module) for e in inner]
        if head in ("Optional", "Union"):
            return _union(*args, *([Hint("None")] if head == "Optional" else []))
        return Hint(head, tuple(args))

    def _class_hint(self, cls: Class) -> Hint:
        values = self._source.enum(cls)
        return Hint("Enum", tuple(values.values())) if values is not None else Hint(cls.node.name)

    def _argument(self, hint: Hint, member: Member, call: dict[str, ast.expr]) -> dict[str, Any]:
        kind = _parsed_type(hint)
        default = self._default(member, call)
        metadata = self._source.value(call["metadata"], member.owner) if "metadata" in call else {}
        spec: dict[str, Any] = {"type": kind.head if kind.head != "Path" else "str"}
        if kind.head in ("Literal", "Enum"):
            spec = _choice(kind)
        elif kind.head == "list":
            item = kind.args[0]
            spec = {**(_choice(item) if item.head == "Enum" else {"type": item.head}), "nargs": "+"}
        elif kind.head == "Union" and _names(kind) == {"bool", "None"}:
            spec["type"] = "bool"
        if spec["type"] == "bool" and (kind.head == "bool" or default.get("default") is not None):
            spec["nargs"] = "?"
        for extra in ("choices", "aliases"):
            if metadata.get(extra) is not None:
                spec.setdefault(extra, list(metadata[extra]))
        return {**spec, **default}

    def _default(self, member: Member, call: dict[str, ast.expr]) -> dict[str, Any]:
        """{'default': value}, {} when it is computed, {'required': True} when there is none."""
        try:
            if "default_factory" in call:
                factory = call["default_factory"]
                if isinstance(factory, ast.Lambda):
                    return {"default": self._source.value(factory.body, member.owner)}
                empty: dict[str, Any] = {"list": [], "dict": {}}
                made = empty.get(ast.unparse(factory))
                return {} if made is None else {"default": made}
            if "default" in call:
                return {"default": self._source.value(call["default"], member.owner)}
        except Unknown:
            return {}
        return {"required": True}


def _parsed_type(hint: Hint) -> Hint:
    """The one type that `HfArgumentParser._parse_dataclass_field` picks out of a Union."""
    if hint.head != "Union":
        return hint
    first: Hint = hint.args[0]
    second: Hint = hint.args[1]
    if set(hint.args) == {Hint("str"), Hint("dict"), Hint("None")}:
        return Hint("str")  # ms-swift turns Union[str, dict, None] around before parsing
    if "None" not in _names(hint):
        return first if second.head == "str" else second
    if "bool" not in _names(hint):
        return first if second.head == "None" else second
    return hint


def _choice(hint: Hint) -> dict[str, Any]:
    numbers = all(isinstance(v, int) and not isinstance(v, bool) for v in hint.args)
    return {"type": "int" if numbers else "str", "choices": list(hint.args)}


def _union(*parts: Hint) -> Hint:
    flat = [q for p in parts for q in (p.args if p.head == "Union" else (p,))]
    unique = tuple(dict.fromkeys(flat))
    return unique[0] if len(unique) == 1 else Hint("Union", unique)


def _names(hint: Hint) -> set[str]:
    return {a.head for a in hint.args}


def _field_call(value: ast.expr | None) -> dict[str, ast.expr]:
    """The keywords of `field(...)`, or the plain default in the same form."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("field", "dataclasses.field"):
        return {k.arg: k.value for k in value.keywords if k.arg}
    return {} if value is None else {"default": value}


if __name__ == "__main__":
    sys.exit(main())
