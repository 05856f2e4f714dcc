"""Addresses and sizes, as the C ABI takes them."""

from std.sys.info import size_of

from .status import ArenaError, Status


def byte_count[dtype: DType](count: Int) raises ArenaError -> UInt64:
    """How many bytes so many values have."""
    comptime assert dtype != DType.bool, "most bytes are no bool: take uint8"
    comptime size = size_of[Scalar[dtype]]()
    if count < 0 or count > Int.MAX // size:
        raise ArenaError(Status.INVALID_ARGUMENT, String("there can't be ", count, " values of ", dtype))
    return UInt64(count * size)


def address[dtype: DType](values: Span[Scalar[dtype], _]) -> Int:
    """Where values are, and 0 where there are none."""
    return Int(values.unsafe_ptr()) if len(values) > 0 else 0


def at[dtype: DType](address: Int) -> Pointer[Scalar[dtype], MutUntrackedOrigin]:
    """A pointer to values at an address. Where there are none and the address is 0, it points nowhere."""
    comptime nowhere = size_of[Scalar[dtype]]()
    return Pointer[Scalar[dtype], MutUntrackedOrigin](unsafe_from_address=address if address != 0 else nowhere)
