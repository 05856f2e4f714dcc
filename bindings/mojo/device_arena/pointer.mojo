"""What is behind a pointer."""

from ._failure import Failure, out
from ._records import CPointerInfo
from .library import Library
from .status import ArenaError, Status
from .vendor import Vendor


@fieldwise_init
struct MemoryKind(Equatable, ImplicitlyCopyable, Writable):
    """The class of memory behind a pointer."""

    var number: Int32
    """The number in the C ABI."""

    comptime UNREGISTERED = Self(0)
    """No driver claims it: pageable host memory, and also freed pointers and ones past an end."""
    comptime PINNED_HOST = Self(1)
    """Host pages that a driver has pinned or registered."""
    comptime DEVICE = Self(2)
    """Memory of one device, or an address that a device alone has for host pages."""
    comptime MANAGED = Self(3)
    """Memory that the driver moves between host and device."""
    comptime UNMAPPED = Self(4)
    """Addresses that a driver has reserved and mapped nothing to."""

    def __eq__(self, other: Self) -> Bool:
        """Compares two classes.

        Args:
            other: The one to compare with.

        Returns:
            Whether they are the same.
        """
        return self.number == other.number

    def write_to(self, mut writer: Some[Writer]):
        """Writes the class's name.

        Args:
            writer: Where to.
        """
        if self == Self.UNREGISTERED:
            writer.write("unregistered")
        elif self == Self.PINNED_HOST:
            writer.write("pinned host memory")
        elif self == Self.DEVICE:
            writer.write("device memory")
        elif self == Self.MANAGED:
            writer.write("managed memory")
        else:
            writer.write("unmapped")


@fieldwise_init
struct AllocationOrigin(Equatable, ImplicitlyCopyable):
    """How a driver came to memory, where it says."""

    var number: Int32
    """The number in the C ABI."""

    comptime UNKNOWN = Self(0)
    """The driver does not say."""
    comptime DIRECT = Self(1)
    """An allocation of its own."""
    comptime POOL = Self(2)
    """A pool of stream-ordered allocations."""
    comptime VIRTUAL = Self(3)
    """Memory that was mapped into reserved addresses."""

    def __eq__(self, other: Self) -> Bool:
        """Compares two origins.

        Args:
            other: The one to compare with.

        Returns:
            Whether they are the same.
        """
        return self.number == other.number


struct PointerInfo(ImplicitlyCopyable):
    """The answer to a classification."""

    var memory: MemoryKind
    """The class of the memory."""
    var vendor: Vendor
    """Whose driver claims it; the host where none does."""
    var device: Int
    """The ordinal of the device that the memory belongs to; -1 for none."""
    var origin: AllocationOrigin
    """How the driver came to the memory."""
    var is_host_accessible: Bool
    """Whether the host can read through the pointer, given that it is live."""
    var is_device_accessible: Bool
    """Whether a device's kernels can."""
    var allocation: UInt64
    """The address of the allocation that the pointer lies in; 0 where the driver does not say."""
    var allocation_bytes: UInt64
    """The allocation's size in bytes; 0 where the driver does not say."""
    var buffer_id: Optional[UInt64]
    """The allocation's identity, where the driver gives one: a later one of the same address has another."""

    @doc_hidden
    def __init__(out self, record: CPointerInfo):
        self.memory = MemoryKind(record.memory)
        self.vendor = Vendor(record.vendor)
        self.device = Int(record.device)
        self.origin = AllocationOrigin(record.origin)
        self.is_host_accessible = record.is_host_accessible != 0
        self.is_device_accessible = record.is_device_accessible != 0
        self.allocation = record.allocation
        self.allocation_bytes = record.allocation_bytes
        self.buffer_id = None
        if record.has_buffer_id != 0:
            self.buffer_id = record.buffer_id


def classify[T: AnyType](library: Library, pointer: Pointer[T, _]) raises ArenaError -> PointerInfo:
    """Asks the drivers what a pointer is. What none claims is unregistered: pageable host memory, and also freed pointers. The
    pointer is not read through.

    Parameters:
        T: What it points to.

    Args:
        library: The library.
        pointer: The pointer, whose memory stays allocated while the answer is used.

    Returns:
        What it is.

    Raises:
        DRIVER where a query fails, which is never a guess.
    """
    var record = CPointerInfo()
    var failure = Failure()
    ref loaded = library._loaded[]
    failure.check(loaded.c.pointer_classify(loaded.id, Int(pointer), out(record), failure.out()))
    return PointerInfo(record)


def classify_range[T: AnyType](library: Library, pointer: Pointer[T, _], bytes: Int) raises ArenaError -> PointerInfo:
    """Asks the drivers what memory is.

    Parameters:
        T: What the pointer points to.

    Args:
        library: The library.
        pointer: Where the memory begins. It stays allocated while the answer is used.
        bytes: How many bytes of it.

    Returns:
        What it is.

    Raises:
        INVALID_ARGUMENT where the bytes leave the allocation that they begin in; DRIVER where a query fails.
    """
    if bytes < 0:
        raise ArenaError(Status.INVALID_ARGUMENT, String("a range can't have ", bytes, " bytes"))
    var record = CPointerInfo()
    var failure = Failure()
    ref loaded = library._loaded[]
    var range = loaded.c.pointer_classify_range(loaded.id, Int(pointer), UInt64(bytes), out(record), failure.out())
    failure.check(range)
    return PointerInfo(record)
