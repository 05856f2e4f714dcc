#!/usr/bin/env python3
"""Writes device_arena/_symbols.mojo and device_arena/_records.mojo: the C ABI's functions and records, as its header
declares them.

    symbols.py [--check]

Only functions that the package calls, as `c.NAME`, are in it. With --check nothing is written: it fails where the files
are not what it would write.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
HEADER = HERE / "../c/include/device_arena.h"
PACKAGE = HERE / "device_arena"
PREFIX = "device_arena_"
# Names that Mojo has a meaning of its own for.
KEYWORDS = {"from", "in", "ref", "out"}
NUMBERS = {
    "int8_t": "Int8",
    "uint8_t": "UInt8",
    "int32_t": "Int32",
    "uint32_t": "UInt32",
    "int64_t": "Int64",
    "uint64_t": "UInt64",
    "size_t": "UInt",
    "char": "UInt8",
    "float": "Float32",
    "double": "Float64",
}


SIZES = {"Int8": 1, "UInt8": 1, "Int32": 4, "UInt32": 4, "Int64": 8, "UInt64": 8, "UInt": 8, "Float32": 4, "Float64": 8}


def camel(name):
    """`device_arena_view_description_t` as `CViewDescription`."""
    return "C" + "".join(part.title() for part in name.removeprefix(PREFIX).removesuffix("_t").split("_"))


class Header:
    """What the header declares."""

    def __init__(self, text):
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
        self.constants = {name: int(value, 0) for name, value in re.findall(r"#define (\w+) (\d\w*)\b", text)}
        text = re.sub(r"^ *#[^\n]*", "", text, flags=re.M)
        text = re.sub(r'extern "C" *{', "", text)
        self.enums = set(re.findall(r"enum (\w+)", text))
        text = re.sub(r"enum \w+[^;{]*{[^}]*};", "", text)
        text = re.sub(r"typedef (enum \w+|int32_t) \w+;", lambda m: m[0] if m[1] == "int32_t" else "", text)
        self.records = {}
        for body, name in re.findall(r"typedef struct \w* *{([^}]*)} *(\w+);", text):
            self.records[name] = [self.declaration(part) for part in body.split(";") if part.strip()]
        text = re.sub(r"typedef struct \w* *{[^}]*} *\w+;", "", text)
        self.callbacks = {}
        for result, name, parameters in re.findall(r"typedef ([\w ]+\**) *\(\*(\w+)\)\(([^)]*)\);", text):
            self.callbacks[name] = (result.strip(), self.parameters(parameters))
        text = re.sub(r"typedef [^;(]*\(\*[^;]*;", "", text)
        self.aliases = {}
        for target in re.findall(r"typedef ([^;]*);", text):
            kind, name, _ = self.declaration(target)
            self.aliases[name] = kind
        text = re.sub(r"typedef [^;]*;", "", text)
        self.functions = {}
        for result, name, parameters in re.findall(r"([\w ]+[ *]+)\b(\w+)\(([^)]*)\);", text):
            self.functions[name.removeprefix(PREFIX)] = (" ".join(result.split()), self.parameters(parameters))

    def parameters(self, text):
        if text.strip() in ("", "void"):
            return []
        return [self.declaration(part) for part in text.split(",")]

    def declaration(self, text):
        """Its type, its name, and how many of it there are."""
        match = re.fullmatch(r"\s*(.*?[\s*])(\w+)\s*(?:\[(\w+)\])?\s*", text, flags=re.S)
        kind, name, count = match.groups()
        if count is not None:
            count = self.constants[count] if count in self.constants else int(count)
        return " ".join(kind.replace("*", " * ").split()), name, count

    def mojo(self, kind):
        """A type of C's, as Mojo has it. What `void *` points to is an address."""
        kind = " ".join(word for word in kind.split() if word not in ("const", "struct", "enum"))
        if kind.endswith("*"):
            target = kind[:-1].strip()
            return "Int" if target in ("void", "char") else f"Out[{self.mojo(target)}]"
        if kind in NUMBERS:
            return NUMBERS[kind]
        if kind == "void":
            return "None"
        if kind in self.enums:
            return "Int32"
        if kind in self.records or kind in self.callbacks:
            return camel(kind)
        return self.mojo(self.aliases[kind])

    def layout(self, kind):
        """Size and alignment of a type of C's, in bytes."""
        kind = " ".join(word for word in kind.split() if word not in ("const", "struct", "enum"))
        if kind.endswith("*"):
            return 8, 8
        if kind in self.records:
            end, most = 0, 1
            for field, _, count in self.records[kind]:
                size, alignment = self.layout(field)
                end = -(-end // alignment) * alignment + size * (1 if count is None else count)
                most = max(most, alignment)
            return -(-end // most) * most, most
        if kind in self.aliases:
            return self.layout(self.aliases[kind])
        size = 4 if kind in self.enums else SIZES[NUMBERS[kind]]
        return size, size

    def function(self, result, parameters):
        kinds = ", ".join(self.mojo(kind) for kind, _, _ in parameters)
        return f'def({kinds}) thin abi("C") -> {self.mojo(result)}'


def needed(header, used):
    """The records and callbacks that functions take, and those within them."""
    names, todo = set(), [kind for name in used for kind, _, _ in header.functions[name][1]]
    while todo:
        for word in todo.pop().split():
            if word not in names and (word in header.records or word in header.callbacks):
                names.add(word)
                todo += [kind for kind, _, _ in header.records.get(word, [])]
    return names


def records(header, names):
    lines = [
        '"""The records of the C ABI, as its header lays them out. Made by `symbols.py`."""',
        "",
        "from std.sys.info import size_of",
        "",
        "comptime Out[T: AnyType] = Pointer[T, MutUnsafeAnyOrigin]",
        '"""A place that a function fills in."""',
        "",
        f"comptime ABI_VERSION = {header.constants['DEVICE_ARENA_ABI_VERSION']}",
        '"""The ABI that the records and functions here are of."""',
    ]
    for name, (result, parameters) in header.callbacks.items():
        if name not in names:
            continue
        lines += ["", f"comptime {camel(name)} = {header.function(result, parameters)}"]
    for name, fields in header.records.items():
        if name not in names:
            continue
        lines += ["", "", f"struct {camel(name)}(Copyable):"]
        zeros = ["", "    def __init__(out self):"]
        zeros.append(f"        comptime assert size_of[Self]() == {header.layout(name)[0]}, \"its size is not C's\"")
        for kind, field, count in fields:
            kind = "Int" if kind.endswith("*") else header.mojo(kind)
            zero = f"{kind}()" if kind.startswith("C") else "0"
            if count is not None:
                # The record of every call is filled in by the library whole, and takes time to fill before.
                filled = "uninitialized=True" if name == PREFIX + "error_t" else f"fill={zero}"
                kind, zero = f"Array[{kind}, {count}]", f"Array[{kind}, {count}]({filled})"
            field = f"`{field}`" if field in KEYWORDS else field
            lines.append(f"    var {field}: {kind}")
            zeros.append(f"        self.{field} = {zero}")
        lines += zeros
    return "\n".join(lines) + "\n"


def symbols(header, used):
    lines = [
        '"""The functions of the C ABI that this package calls, each found and checked once. Made by `symbols.py`."""',
        "",
        "from std.ffi import OwnedDLHandle",
        "",
        "from ._records import *",
        "from .status import ArenaError, Status",
        "",
        "",
        "struct Symbols:",
        '    """Where the functions are. They hold as long as the library is loaded."""',
        "",
    ]
    for name in used:
        lines.append(f"    var {name}: {header.function(*header.functions[name])}")
    lines += [
        "",
        "    def __init__(out self, handle: OwnedDLHandle) raises ArenaError:",
        '        """Finds all of them, or says which is missing: calling that one would end the process."""',
    ]
    for name in used:
        lines.append(f'        self.{name} = found[type_of(self.{name})](handle, "{PREFIX}{name}")')
    lines += [
        "",
        "",
        "def found[F: TrivialRegisterPassable](handle: OwnedDLHandle, name: StaticString) raises ArenaError -> F:",
        '    """A function of the library\'s."""',
        "    var symbol = handle.get_symbol[NoneType](name)",
        "    if not symbol:",
        '        raise ArenaError(Status.UNAVAILABLE, String("the library lacks the function ", name))',
        "    var address = symbol.value()",
        "    return Pointer(to=address).unsafe_bitcast[F]()[]",
    ]
    return "\n".join(lines) + "\n"


def main():
    header = Header(HEADER.read_text())
    sources = [path for path in sorted(PACKAGE.glob("*.mojo")) if path.name not in ("_symbols.mojo", "_records.mojo")]
    called = {name for path in sources for name in re.findall(r"\bc\.(\w+)", path.read_text())}
    unknown = called - header.functions.keys()
    if unknown:
        sys.exit(f"error: not in the header: {', '.join(sorted(unknown))}")
    used = [name for name in header.functions if name in called]
    stale = False
    for name, text in (("_records.mojo", records(header, needed(header, used))), ("_symbols.mojo", symbols(header, used))):
        path = PACKAGE / name
        if path.exists() and path.read_text() == text:
            continue
        if "--check" in sys.argv[1:]:
            print(f"error: {path} is not what {pathlib.Path(__file__).name} writes", file=sys.stderr)
            stale = True
        else:
            path.write_text(text)
    print(f"{len(used)} functions of {len(header.functions)}, {len(header.records)} records")
    sys.exit(stale)


main()
