"""What the tests run on, and what they ask of a refusal."""

from device_arena import Arena, ArenaError, Call, Executor, Library, Residency, Status, View
from std.os import getenv
from std.testing import assert_equal, assert_true


def is_vram() -> Bool:
    """Whether DEVICE_ARENA_VRAM names a GPU. The host is what the tests run on else."""
    return Bool(getenv("DEVICE_ARENA_VRAM"))


def vram_number() raises -> Int:
    return atol(getenv("DEVICE_ARENA_VRAM"))


def an_executor(library: Library) raises -> Executor:
    """The one that the tests run on."""
    return Executor.for_vram(library, vram_number()) if is_vram() else Executor.for_host(library)


def named_backend(library: Library) raises -> String:
    """Names it for people."""
    var executor = an_executor(library)
    var device = executor.device()
    if not is_vram():
        return String(executor.vendor())
    return String(executor.vendor(), " ", device.ordinal, ", ", device.name)


def values(count: Int, first: Int32 = 0) -> List[Int32]:
    """Numbers that count up."""
    var list = List[Int32](capacity=count)
    for index in range(count):
        list.append(first + Int32(index))
    return list^


def a_result(executor: Executor, arena: Arena, count: Int = 4, first: Int32 = 0) raises ArenaError -> View[DType.int32]:
    """The result of one call: numbers that count up."""
    var call = executor.begin(arena)
    var view = published(call, count, first)
    call^.finish()
    return view^


def published(call: Call, count: Int = 4, first: Int32 = 0) raises ArenaError -> View[DType.int32]:
    """An output of a call: numbers that count up."""
    var output = call.output[DType.int32](count)
    var numbers = values(count, first)
    output.write(Span(numbers))
    return output^.publish()


def refusal[T: Deinitable, //](attempt: Some[def() raises ArenaError -> T]) -> Status:
    """What an attempt is refused with, or OK."""
    try:
        _ = attempt()
        return Status.OK
    except error:
        return error.status


def refusal(attempt: Some[def() raises ArenaError -> None]) -> Status:
    """What an attempt is refused with, or OK."""
    try:
        attempt()
        return Status.OK
    except error:
        return error.status


def reason(attempt: Some[def() raises ArenaError -> None]) -> String:
    """What an attempt is refused with, in words."""
    try:
        attempt()
        return String()
    except error:
        return error.message


def assert_values(values: List[Int32], count: Int, first: Int32 = 0) raises:
    """Holds numbers against those that `a_result` has."""
    assert_equal(len(values), count)
    for index in range(count):
        assert_equal(values[index], first + Int32(index))
