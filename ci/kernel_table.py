"""Reads what the compilers say of the kernels, and prints it as a table: for devices that can't be timed, this is what
there is to argue with.

    kernel_table.py TARGET=FILE...

A file is clang's assembly for an AMD target (gfx...), or what `ptxas -v` said (sm_...); `ptx=FILE` is the text that the
latter assembled.
"""

import re
import sys

KERNELS = [
    "device_arena_copy",
    "device_arena_copy_few",
    "device_arena_copy_short",
    "device_arena_copy_few_short",
    "device_arena_copy_rows",
    "device_arena_rewind",
]
# What a thread moves at once: instructions of 16 bytes, and of one.
AMD_WIDE = r"global_(load|store)_(?:dwordx4|b128)\b"
AMD_BYTE = r"(?:global|flat)_(load|store)_(?:ubyte|u8|byte|b8|d16_u8)\b"
PTX_WIDE = r"\b(ld|st)\.global(?:\.\w+)*\.v2\.\w?64\b"
PTX_BYTE = r"\b(ld|st)\.global(?:\.\w+)*\.[bu]8\b"
# The threads of a wave, and the waves that a compute unit has room for with few registers: 4 SIMDs of 8, 2 of 16.
AMD_UNIT = {"gfx942": (64, 4), "gfx1100": (32, 2)}
BLOCK = 256


def moves(text, wide, byte):
    """Loads and stores by width, as the code has them."""
    counts = []
    for pattern in (wide, byte):
        found = re.findall(pattern, text)
        counts += [sum(kind in ("load", "ld") for kind in found), sum(kind in ("store", "st") for kind in found)]
    return counts


def number(pattern, text):
    return int(re.search(pattern, text).group(1))


def of_amd(target, assembly):
    lanes, simds = AMD_UNIT[target]
    for kernel in KERNELS:
        body = re.search(rf"^{kernel}:.*?^; Occupancy: \d+", assembly, re.S | re.M).group(0)
        waves = number(r"; Occupancy: (\d+)", body)
        yield (
            kernel,
            moves(body, AMD_WIDE, AMD_BYTE),
            f'{number(r"; NumVgprs: ([0-9]+)", body)} + {number(r"; TotalNumSgprs: ([0-9]+)", body)}',
            number(r"; ScratchSize: (\d+)", body),
            number(r"; codeLenInByte = (\d+)", body),
            waves * simds * lanes,
        )


def of_nvidia(said, ptx):
    for kernel in KERNELS:
        body = re.search(rf"\.entry {kernel}\(.*?^}}", ptx, re.S | re.M).group(0)
        line = re.search(rf"function '{kernel}'.*?Used (\d+) registers", said, re.S)
        registers = int(line.group(1))
        # A warp's registers are given out by 256.
        warps = 65536 // (-(-registers * 32 // 256) * 256)
        blocks = min(warps // (BLOCK // 32), 2048 // BLOCK)
        spills = number(r"(\d+) bytes spill stores", line.group(0))
        yield kernel, moves(body, PTX_WIDE, PTX_BYTE), str(registers), spills, "", blocks * BLOCK


def main():
    files = dict(argument.split("=", 1) for argument in sys.argv[1:])
    texts = {target: open(file).read() for target, file in files.items()}
    ptx = texts.pop("ptx")
    print("# The kernels as machine code\n")
    print("`ci/kernels --write` writes this. Loads and stores are those in the code, in all its branches, the list's among them;")
    print("16 bytes are what these devices move at once at most. Registers are a thread's: on AMD vector and scalar ones.")
    print("Threads are as many as have room at once in a compute unit or a multiprocessor, in blocks of 256.\n")
    print("| target | kernel | 16 B loads / stores | 1 B loads / stores | registers | spilled | code bytes | threads at once |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for target, text in texts.items():
        rows = of_amd(target, text) if target.startswith("gfx") else of_nvidia(text, ptx)
        for kernel, (loads, stores, byte_loads, byte_stores), registers, spilled, code, threads in rows:
            name = kernel.removeprefix("device_arena_")
            print(
                f"| {target} | `{name}` | {loads} / {stores} | {byte_loads} / {byte_stores} | {registers} | {spilled} |"
                f" {code or '-'} | {threads} |"
            )
    print("\nA thread of `copy` loads 128 bytes before it stores any, or 64 where the ends are not aligned alike. So there are under")
    print("way at once, at most:\n")
    for target, text in texts.items():
        rows = of_amd(target, text) if target.startswith("gfx") else of_nvidia(text, ptx)
        unit = "a compute unit" if target.startswith("gfx") else "a multiprocessor"
        print(f"- {next(rows)[-1] * 128 // 1024} KiB in {unit} of {target}")


main()
