"""Follows a pydantic error location through a model's types to the path in the document it speaks of."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, Tag

from runner.core.document import Path


class Place(NamedTuple):
    """What an error location means: the document's path, and what the model knows there."""

    path: Path
    is_key: bool  # the error is about the key itself
    fields: tuple[str, ...]  # the keys that may stand beside the last part of the path
    below: Mapping[str, frozenset[str]]  # the keys that may stand under each of those fields
    tags: tuple[str, ...]  # the choices when a union with a discriminator stands here


def locate(model: type[BaseModel], data: object, loc: Sequence[str | int]) -> Place:
    """The place of one pydantic error; labels that pydantic adds for branches of unions are left out."""
    here: Any = model
    path: list[str | int] = []
    owner: type[BaseModel] | None = None
    is_key = bool(loc) and loc[-1] == "[key]"
    for part in loc[:-1] if is_key else loc:
        members = _members(here)
        if len(members) > 1:
            branch = _branch(here, str(part))
            if branch is not None or not _holds(data, part):
                here = branch
                continue
        owner, here = _enter(members[0] if len(members) == 1 else None, part)
        data = _inside(data, part)
        path.append(part)
    fields = tuple(_fields(owner)) if owner is not None else ()
    return Place(tuple(path), is_key, fields, _below(owner), tuple(_tags(here)))


def _holds(data: object, part: str | int) -> bool:
    if isinstance(data, Mapping):
        return part in data
    return isinstance(data, list) and isinstance(part, int) and 0 <= part < len(data)


def _inside(data: object, part: str | int) -> object:
    return data[part] if _holds(data, part) else None  # type: ignore[index]


def _enter(here: Any, part: str | int) -> tuple[type[BaseModel] | None, Any]:
    """The model that owns the key `part` (None for lists and open mappings) and the type below it."""
    if _is_model(here):
        return here, _fields(here).get(str(part))
    args = get_args(here)
    if not args:
        return None, None
    return None, args[-1] if isinstance(part, str) else args[0]


@lru_cache(maxsize=512)
def _fields(model: type[BaseModel]) -> dict[str, Any]:
    return {f.alias or name: _typed(f) for name, f in model.model_fields.items()}


def _typed(field: Any) -> Any:
    return Annotated[field.annotation, field] if field.annotation is not None else None


def _below(owner: type[BaseModel] | None) -> dict[str, frozenset[str]]:
    if owner is None:
        return {}
    found = {}
    for name, tp in _fields(owner).items():
        models = [_bare(m) for m in _members(tp) if _is_model(_bare(m))]
        if models:
            found[name] = frozenset(key for m in models for key in _fields(m))
    return found


def _members(tp: Any) -> list[Any]:
    """The alternatives of a type without None; one for a plain type."""
    tp = _bare(tp)
    if get_origin(tp) in (Union, types.UnionType):
        return [m for m in get_args(tp) if m is not type(None)]
    return [] if tp is None else [tp]


def _branch(union: Any, label: str) -> Any:
    """The alternative that pydantic means by this label, else None."""
    tag = _discriminator(union)
    for member in _members(union):
        if len(_members(member)) > 1:
            found = _branch(member, label)
            if found is not None:
                return found
        elif label in _labels(member, tag):
            return _bare(member)
    # dict[constrained-str,X]: how pydantic spells what is inside is its own affair
    outer = label.partition("[")[0]
    alike = [m for m in map(_bare, _members(union)) if getattr(get_origin(m), "__name__", None) == outer]
    return alike[0] if alike else None


def _labels(member: Any, tag: str | None) -> set[str]:
    bare = _bare(member)
    labels = {m.tag for m in getattr(member, "__metadata__", ()) if isinstance(m, Tag)}
    if tag is not None and _is_model(bare):
        return labels | set(_literals(_fields(bare).get(tag)))
    # pydantic labels the branches of other unions by type: str, list[str], a model's name
    return labels | {getattr(bare, "__name__", ""), str(bare)}


def _literals(tp: Any) -> tuple[str, ...]:
    bare = _bare(tp)
    return tuple(str(v) for v in get_args(bare)) if get_origin(bare) is Literal else ()


def _tags(union: Any) -> list[str]:
    """What the discriminator of this union of models may be; nothing for other types."""
    tag = _discriminator(union)
    found: list[str] = []
    for member in _members(union):
        if len(_members(member)) > 1:
            found += _tags(member)
        elif tag is not None and _is_model(_bare(member)):
            found += _literals(_fields(_bare(member)).get(tag))
    return found


def _discriminator(tp: Any) -> str | None:
    """The name of the field that tells the members of a union apart."""
    while True:
        for note in getattr(tp, "__metadata__", ()):
            name = getattr(note, "discriminator", None)
            if isinstance(name, str):
                return name
        if get_origin(tp) is Annotated:
            tp = get_args(tp)[0]
        elif hasattr(tp, "__value__"):
            tp = tp.__value__
        else:
            return None


def _is_model(tp: Any) -> bool:
    return isinstance(tp, type) and issubclass(tp, BaseModel)


def _bare(tp: Any) -> Any:
    """The type without Annotated and without the name that a `type` statement gave it."""
    while True:
        if get_origin(tp) is Annotated:
            tp = get_args(tp)[0]
        elif hasattr(tp, "__value__"):
            tp = tp.__value__
        else:
            return tp
