"""Fields of the settings that a program reads, found by the types of its expressions."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

from mypy import build
from mypy.modulefinder import BuildSource
from mypy.nodes import Decorator, Expression, FuncDef, MemberExpr, MypyFile, TypeInfo
from mypy.options import Options
from mypy.server.subexpr import get_subexpressions
from mypy.types import Instance, Type, UnionType, get_proper_type
from pydantic import BaseModel


class Attribute(NamedTuple):
    """An attribute of a class, with the full name of the class that declares it."""

    owner: str
    name: str


class Leaf(NamedTuple):
    """A setting that holds a value: its path, and the field that each step of the path reads."""

    path: str
    fields: tuple[Attribute, ...]


def leaves(
    section: type[BaseModel], path: str = "", fields: tuple[Attribute, ...] = ()
) -> Iterator[Leaf]:
    """Yield all leaves of a section, including the leaves inside list and mapping items."""
    for name, field in section.model_fields.items():
        here = f"{path}.{name}".lstrip("."), (*fields, _declared(section, name))
        inner = list(_sections(field.annotation))
        if not inner:
            yield Leaf(*here)
        for each in inner:
            yield from leaves(each, *here)


def sections(section: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a section and all sections in it, each as often as it occurs."""
    yield section
    for field in section.model_fields.values():
        for inner in _sections(field.annotation):
            yield from sections(inner)


def unread(found: Sequence[Leaf], reads: frozenset[Attribute]) -> list[str]:
    """Return the paths of the leaves with a step that is not read."""
    return [leaf.path for leaf in found if not reads.issuperset(leaf.fields)]


def find_reads(sources: Sequence[BuildSource], declaring: frozenset[str]) -> frozenset[Attribute]:
    """Return the attributes that are read outside of the modules that declare settings.

    What a method or property of a declaring module reads counts if the method is read outside. The
    type of every expression comes from mypy, so an attribute of another class with the same name
    is another attribute. Modules that are not among the sources have no types.
    """
    result = build.build([*sources], _options())
    if result.errors:
        raise ValueError("\n".join(result.errors))
    types = result.types
    used: set[Attribute] = set()
    in_methods: dict[Attribute, set[Attribute]] = {}
    for source in sources:
        file = result.files[source.module]
        if source.module in declaring:
            in_methods |= _reads_of_methods(file, types)
        else:
            used |= _reads(get_subexpressions(file), types)
    new = set(used)
    while new:
        new = {read for method in new for read in in_methods.get(method, ())} - used
        used |= new
    return frozenset(used)


def sources_below(root: Path, package: str) -> Iterator[BuildSource]:
    """Yield the modules of a package that `root` contains."""
    for path in sorted((root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        yield BuildSource(str(path), ".".join(parts).removesuffix(".__init__"))


def _declared(section: type[BaseModel], name: str) -> Attribute:
    owner = next(one for one in section.__mro__ if name in vars(one).get("__annotations__", {}))
    return Attribute(f"{owner.__module__}.{owner.__qualname__}", name)


def _sections(kind: Any) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for part in get_args(kind):
        yield from _sections(part)


def _options() -> Options:
    options = Options()
    options.export_types = options.preserve_asts = options.check_untyped_defs = True
    options.namespace_packages = options.explicit_package_bases = True
    options.follow_imports = "skip"
    options.ignore_errors = True
    options.incremental = False
    options.mypy_path = ["cmd", "."]
    return options


def _reads_of_methods(
    file: MypyFile, types: Mapping[Expression, Type]
) -> Iterator[tuple[Attribute, set[Attribute]]]:
    for symbol in file.names.values():
        info = symbol.node
        if not isinstance(info, TypeInfo) or info.module_name != file.fullname:
            continue
        for name, member in info.names.items():
            method = member.node.func if isinstance(member.node, Decorator) else member.node
            if isinstance(method, FuncDef):
                reads = _reads(get_subexpressions(method), types)
                yield Attribute(info.fullname, name), reads


def _reads(expressions: Sequence[Expression], types: Mapping[Expression, Type]) -> set[Attribute]:
    found: set[Attribute] = set()
    for each in expressions:
        if not isinstance(each, MemberExpr):
            continue
        kind = get_proper_type(types.get(each.expr))
        for one in kind.items if isinstance(kind, UnionType) else [kind]:
            instance = get_proper_type(one)
            if isinstance(instance, Instance):
                owner = next((k for k in instance.type.mro if each.name in k.names), None)
                found |= {Attribute(owner.fullname, each.name)} if owner else set()
    return found
