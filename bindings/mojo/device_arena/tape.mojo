"""Tapes: many variable-length inputs in one buffer."""

from std.sys.info import size_of

from ._failure import Failure, out
from ._handle import Handle
from ._memory import address, at
from ._records import CTapeDescription
from .library import Library
from .pointer import MemoryKind
from .status import ArenaError, Status


struct TapeView[
    bytes_mut: Bool, offsets_mut: Bool, //, bytes_origin: Origin[mut=bytes_mut], offsets_origin: Origin[mut=offsets_mut]
](Movable, Sized):
    """A checked look at a tape: item `i` is the bytes from offset `i` to offset `i + 1`.

    It borrows both from whoever owns them. There is one more offset than there are items, or none for no items; they never
    decrease, none is negative, and the last lies within the bytes.

    Parameters:
        bytes_mut: Whether the bytes could be written.
        offsets_mut: Whether the offsets could be written.
        bytes_origin: Where the bytes are from.
        offsets_origin: Where the offsets are from.
    """

    var _handle: Handle
    var _items: Int
    var _byte_count: Int

    @staticmethod
    def of[
        dtype: DType, //
    ](
        library: Library, bytes: Span[UInt8, Self.bytes_origin], offsets: Span[Scalar[dtype], Self.offsets_origin]
    ) raises ArenaError -> Self:
        """Checks a tape in the host's memory. No driver is asked.

        Parameters:
            dtype: The type of the offsets: uint32, uint64, int32 or int64.

        Args:
            library: The library.
            bytes: The bytes of all items.
            offsets: Where each item begins, and where the last one ends.

        Returns:
            The tape.

        Raises:
            INVALID_ARGUMENT, which names the first offset that is wrong.
        """
        comptime width = offset_width[dtype]()
        var id = UInt64(0)
        var failure = Failure()
        ref loaded = library._loaded[]
        failure.check(
            loaded.c.tape_of_span(
                out(id),
                loaded.id,
                address(bytes),
                UInt64(len(bytes)),
                address(offsets),
                UInt64(len(offsets)),
                width,
                failure.out(),
            )
        )
        return Self(library=library, id=id, items=max(len(offsets) - 1, 0), byte_count=len(bytes))

    @staticmethod
    def of[
        dtype: DType, //
    ](
        library: Library,
        bytes: Pointer[UInt8, Self.bytes_origin],
        byte_count: Int,
        offsets: Span[Scalar[dtype], Self.offsets_origin],
    ) raises ArenaError -> Self:
        """Checks a tape whose bytes are anywhere: the drivers are asked what the pointer is. Offsets are the host's.

        The caller vouches for what no driver claims: that it is the host's memory, and lives. Memory of a device has to live
        until work that reads the tape has passed.

        Parameters:
            dtype: The type of the offsets: uint32, uint64, int32 or int64.

        Args:
            library: The library.
            bytes: The bytes of all items, in the host's or a device's memory, such as a device buffer's `unsafe_ptr()`.
            byte_count: How many there are.
            offsets: Where each item begins, and where the last one ends.

        Returns:
            The tape.

        Raises:
            INVALID_ARGUMENT, which names the first offset that is wrong, or says that the bytes leave their allocation.
        """
        return Self._of_pointers[dtype](library, Int(bytes), byte_count, address(offsets), len(offsets))

    @staticmethod
    def of[
        dtype: DType, //
    ](
        library: Library,
        bytes: Pointer[UInt8, Self.bytes_origin],
        byte_count: Int,
        offsets: Pointer[Scalar[dtype], Self.offsets_origin],
        offset_count: Int,
    ) raises ArenaError -> Self:
        """Checks a tape of two pointers: the drivers are asked what they are. Otherwise as the other two.

        Parameters:
            dtype: The type of the offsets: uint32, uint64, int32 or int64.

        Args:
            library: The library.
            bytes: The bytes of all items, in the host's or a device's memory.
            byte_count: How many there are.
            offsets: Where each item begins, and where the last one ends.
            offset_count: How many there are.

        Returns:
            The tape.

        Raises:
            DEVICE for offsets in a device's memory; INVALID_ARGUMENT, which names the first offset that is wrong, or says
            that the bytes leave their allocation.
        """
        return Self._of_pointers[dtype](library, Int(bytes), byte_count, Int(offsets), offset_count)

    @staticmethod
    def _of_pointers[
        dtype: DType
    ](library: Library, bytes: Int, byte_count: Int, offsets: Int, offset_count: Int) raises ArenaError -> Self:
        comptime width = offset_width[dtype]()
        if byte_count < 0 or offset_count < 0:
            var message = String("a tape can't have ", byte_count, " bytes and ", offset_count, " offsets")
            raise ArenaError(Status.INVALID_ARGUMENT, message)
        var id = UInt64(0)
        var failure = Failure()
        ref loaded = library._loaded[]
        failure.check(
            loaded.c.tape_of_pointer(
                out(id),
                loaded.id,
                bytes,
                UInt64(byte_count),
                offsets,
                UInt64(offset_count),
                width,
                failure.out(),
            )
        )
        return Self(library=library, id=id, items=max(offset_count - 1, 0), byte_count=byte_count)

    @doc_hidden
    def __init__(out self, *, library: Library, id: UInt64, items: Int, byte_count: Int):
        self._handle = Handle(library._loaded, id, library._loaded[].c.tape_free)
        self._items = items
        self._byte_count = byte_count

    def __len__(self) -> Int:
        """Counts the items.

        Returns:
            How many there are.
        """
        return self._items

    def byte_count(self) -> Int:
        """Counts the bytes.

        Returns:
            How many there are, those that no item covers included.
        """
        return self._byte_count

    def memory(self) raises ArenaError -> MemoryKind:
        """Says what the bytes' memory is. A span that no driver was asked about is unregistered.

        Returns:
            The class of memory.

        Raises:
            An error where the library fails.
        """
        return MemoryKind(self._record().memory)

    def device(self) raises ArenaError -> Int:
        """Says which device the bytes are in.

        Returns:
            Its ordinal; -1 for the host's memory.

        Raises:
            An error where the library fails.
        """
        return Int(self._record().device)

    def item(self, index: Int) raises ArenaError -> Span[UInt8, ImmOrigin(Self.bytes_origin)]:
        """Shows an item to the host.

        Args:
            index: Which.

        Returns:
            Its bytes.

        Raises:
            DEVICE where they are a device's; INVALID_ARGUMENT beyond the last.
        """
        var data = Int(0)
        var bytes = UInt64(0)
        var failure = Failure()
        ref c = self._handle.loaded[].c
        # A negative index is far beyond the last.
        failure.check(c.tape_item(self._handle.id, UInt64(index), out(data), out(bytes), failure.out()))
        return Span[UInt8, ImmOrigin(Self.bytes_origin)](
            unsafe_ptr=at[DType.uint8](data)
            .unsafe_mut_cast[False]()
            .unsafe_origin_cast[ImmOrigin(Self.bytes_origin)](),
            length=Int(bytes),
        )

    def _record(self) raises ArenaError -> CTapeDescription:
        var record = CTapeDescription()
        var failure = Failure()
        failure.check(self._handle.loaded[].c.tape_describe(self._handle.id, out(record), failure.out()))
        return record^


@doc_hidden
def offset_width[dtype: DType]() -> Int32:
    """The number of a type of offsets in the C ABI."""
    comptime assert (
        dtype == DType.uint32 or dtype == DType.uint64 or dtype == DType.int32 or dtype == DType.int64
    ), "offsets are uint32, uint64, int32 or int64"
    comptime if dtype == DType.uint32:
        return 0
    elif dtype == DType.uint64:
        return 1
    elif dtype == DType.int32:
        return 2
    else:
        return 3
