"""Python packages read as syntax trees: what names mean, bases, dataclass fields, constants."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class Unknown(Exception):  # noqa: N818 - an answer, not a failure
    """The value is only known when the code runs."""


@dataclass
class Module:
    """One source file: its name, whether it is a package, and the statement that binds each name."""

    name: str
    package: bool
    bound: dict[str, ast.AST] = field(default_factory=dict)


@dataclass(frozen=True)
class Class:
    """A class statement and the module it stands in."""

    module: Module
    node: ast.ClassDef


@dataclass(frozen=True)
class Member:
    """A dataclass field: the class that defines it and its statement."""

    owner: Class
    node: ast.AnnAssign


class Source:
    """Python packages in a folder, none of which is ever imported."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._modules: dict[str, Module] = {}
        self._fields: dict[int, dict[str, Member]] = {}

    def fields(self, cls: Class) -> dict[str, Member]:
        """As `dataclasses` collects them: every dataclass base brings all its fields, then the own ones."""
        if id(cls.node) not in self._fields:
            found: dict[str, Member] = {}
            for base in reversed(self.mro(cls)[1:]):
                found.update(self.fields(base))
            if _is_dataclass(cls.node):
                own = ((k, n) for k, n in declared(cls.node) if "ClassVar" not in ast.dump(n.annotation))
                found.update({k: Member(cls, n) for k, n in own})
            self._fields[id(cls.node)] = found
        return self._fields[id(cls.node)]

    def module(self, name: str) -> Module:
        """A module by its dotted name; one without names when the folder has no such file."""
        if name not in self._modules:
            base = self._root.joinpath(*name.split("."))
            package = (base / "__init__.py").is_file()
            path = base / "__init__.py" if package else base.with_suffix(".py")
            module = self._modules[name] = Module(name, package)
            if path.is_file():
                module.bound = _bindings(ast.parse(path.read_text(encoding="utf-8")).body)
        return self._modules[name]

    def resolve(self, module: Module, name: str) -> Class | tuple[Module, ast.AST] | Module | str:
        """What a name means in a module: a class, a statement, a module, or its dotted name outside."""
        node = module.bound.get(name)
        match node:
            case None:
                sub = self.module(f"{module.name}.{name}")
                return sub if sub.bound else name
            case ast.ClassDef():
                return Class(module, node)
            case ast.Import():
                return self._imported(node, name)
            case ast.ImportFrom():
                origin = next(a.name for a in node.names if (a.asname or a.name) == name)
                path = _absolute(module, node)
                target = self.module(path)
                submodule = self.module(f"{path}.{origin}")
                if origin not in target.bound:
                    return submodule if submodule.bound else f"{path}.{origin}"
                return self.resolve(target, origin)
            case _:
                return module, node

    def enum(self, cls: Class) -> dict[str, Any] | None:
        bases = [self.follow(b, cls.module) for b in cls.node.bases]
        is_enum = any(b in ("enum.Enum", "enum.StrEnum") for b in bases)
        parents = [self.enum(b) for b in bases if isinstance(b, Class)]
        if not is_enum and all(p is None for p in parents):
            return None
        members = {k: v for p in parents if p for k, v in p.items()}
        for node in cls.node.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                members[node.targets[0].id] = self.constant(node.value, cls.module, {})
        return members

    def value(self, node: ast.expr, cls: Class) -> Any:
        return self.constant(node, cls.module, _bindings(cls.node.body, once=True))

    def constant(self, node: ast.expr, module: Module, local: dict[str, ast.AST]) -> Any:
        """The value of an expression that needs nothing to run; what is unknown inside a dict stays None."""
        match node:
            case ast.Constant():
                return node.value
            case ast.List() | ast.Tuple() | ast.Set():
                return [self.constant(e, module, local) for e in node.elts]
            case ast.UnaryOp(op=ast.USub()):
                return -self.constant(node.operand, module, local)
            case ast.Dict():
                keys = [self.constant(k, module, local) for k in node.keys if k is not None]
                return dict(zip(keys, (self._known(v, module, local) for v in node.values), strict=True))
            case ast.Call():
                return self._called(node, module, local)
            case ast.Attribute(value=ast.Name() | ast.Attribute() as owner):
                found = self.follow(owner, module)
                members = self.enum(found) if isinstance(found, Class) else None
                if members and node.attr in members:
                    return members[node.attr]
            case ast.Name(id=name) if isinstance(local.get(name), ast.Assign):
                return self.constant(local[name].value, module, local)  # type: ignore[attr-defined]
            case ast.Name():
                found = self.resolve(module, node.id)
                if isinstance(found, tuple) and isinstance(found[1], ast.Assign):
                    return self.constant(found[1].value, found[0], {})
        raise Unknown(ast.unparse(node))

    def _known(self, node: ast.expr, module: Module, local: dict[str, ast.AST]) -> Any:
        try:
            return self.constant(node, module, local)
        except Unknown:
            return None

    def _called(self, node: ast.Call, module: Module, local: dict[str, ast.AST]) -> Any:
        match node.func:
            case ast.Name(id="dict"):
                made: dict[Any, Any] = {}
                for word in node.keywords:
                    value = self.constant(word.value, module, local)
                    made.update(value if word.arg is None else {word.arg: value})
                return made
            case ast.Name(id="list" | "tuple") if len(node.args) == 1:
                return list(self.constant(node.args[0], module, local))
            case ast.Attribute(attr="keys" | "copy", value=owner):
                return self.constant(owner, module, local)
        found = self.follow(node.func, module)
        if isinstance(found, tuple) and isinstance(found[1], ast.FunctionDef) and not node.args:
            last = found[1].body[-1]
            if isinstance(last, ast.Return) and last.value is not None:
                return self.constant(last.value, found[0], {})
        raise Unknown(ast.unparse(node))

    def follow(self, node: ast.expr, module: Module) -> Class | tuple[Module, ast.AST] | Module | str:
        if isinstance(node, ast.Name):
            return self.resolve(module, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.follow(node.value, module)
            if isinstance(owner, Module):
                return self.resolve(owner, node.attr)
            return f"{owner}.{node.attr}" if isinstance(owner, str) else ast.unparse(node)
        return ast.unparse(node)

    def _imported(self, node: ast.Import, name: str) -> Module | str:
        alias = next(a for a in node.names if (a.asname or a.name.split(".")[0]) == name)
        target = self.module(alias.name if alias.asname else name)
        return target if target.bound else target.name

    def mro(self, cls: Class) -> list[Class]:
        """The C3 order of a class and its bases, as far as their source is in the folder."""
        bases = [b for b in (self.follow(n, cls.module) for n in cls.node.bases) if isinstance(b, Class)]
        rows = [self.mro(b) for b in bases] + [bases]
        order = [cls]
        while rows := [row for row in rows if row]:
            tails = [c.node for row in rows for c in row[1:]]
            head = next(row[0] for row in rows if row[0].node not in tails)
            order.append(head)
            rows = [[c for c in row if c.node is not head.node] for row in rows]
        return order


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any(ast.unparse(d).split("(")[0].endswith("dataclass") for d in node.decorator_list)


def declared(node: ast.ClassDef) -> Iterator[tuple[str, ast.AnnAssign]]:
    """The annotated names of a class body, in order."""
    for n in node.body:
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name):
            yield n.target.id, n


def _bindings(body: list[ast.stmt], *, once: bool = False) -> dict[str, ast.AST]:
    """Which statement binds each name; `else` and `except` only add; `once` drops what is bound twice."""
    bound: dict[str, ast.AST] = {}
    twice: set[str] = set()
    for node in body:
        names: dict[str, ast.AST]
        match node:
            case ast.ClassDef() | ast.FunctionDef():
                names = {node.name: node}
            case ast.Assign():
                names = {t.id: node for t in node.targets if isinstance(t, ast.Name)}
            case ast.Import() | ast.ImportFrom():
                names = {a.asname or a.name.split(".")[0]: node for a in node.names}
            case ast.If() | ast.Try():
                other = [*node.orelse, *(s for h in getattr(node, "handlers", []) for s in h.body)]
                names = {**_bindings(other), **_bindings(node.body)}
            case _:
                continue
        twice |= bound.keys() & names.keys()
        bound.update(names)
    return {k: v for k, v in bound.items() if k not in twice} if once else bound


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    parts = parts[: len(parts) - node.level + (1 if module.package else 0)]
    return ".".join([*parts, *([node.module] if node.module else [])])
