"""Put one deliberate bug into the product, as a change of its text.

A mutant names a function and a piece of its source that is replaced. The piece must be there
exactly once: a change of the product that makes a mutant pointless fails loudly.
"""

import importlib
import inspect
import sys
import textwrap
from types import FunctionType, ModuleType
from typing import cast

import msgspec


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """One deliberate bug."""

    name: str
    target: str
    """`module:function` or `module:Class.method`, below `horolog`."""
    old: str
    new: str


def apply(mutant: Mutant) -> None:
    """Change the product of this process for good; run it in a process of its own."""
    module_name, _, path = mutant.target.partition(":")
    module = importlib.import_module(f"horolog.{module_name}")
    *classes, name = path.split(".")
    owner: ModuleType | type = module
    for each in classes:
        owner = getattr(owner, each)
    original = getattr(owner, name)
    if isinstance(original, property):
        assert isinstance(original.fget, FunctionType)
        setattr(owner, name, property(_changed(module, original.fget, mutant)))
        return
    assert isinstance(original, FunctionType), f"{mutant.target} is no function"
    changed = _changed(module, original, mutant)
    setattr(owner, name, changed)
    if not classes:
        _replace_everywhere(original, changed)


def _changed(module: ModuleType, original: FunctionType, mutant: Mutant) -> FunctionType:
    source = textwrap.dedent(inspect.getsource(original))
    found = source.count(mutant.old)
    assert found == 1, f"{mutant.name}: {mutant.old!r} stands {found} times in {mutant.target}"
    lines = source.replace(mutant.old, mutant.new).splitlines()
    while lines[0].startswith("@"):
        lines.pop(0)
    made: dict[str, FunctionType] = {}
    code = compile("\n".join(lines), f"<mutant {mutant.name}>", "exec")
    exec(code, vars(module), made)
    return made[original.__name__]


def _replace_everywhere(original: FunctionType, changed: FunctionType) -> None:
    """Whoever imported the function, and every table that holds it, gets the changed one."""
    for name, module in list(sys.modules.items()):
        if not name.startswith("horolog."):
            continue
        for key, value in list(vars(module).items()):
            if value is original:
                setattr(module, key, changed)
            elif isinstance(value, dict):
                table = cast("dict[object, object]", value)
                for entry, kept in list(table.items()):
                    if kept is original:
                        table[entry] = changed
