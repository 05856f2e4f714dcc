"""What arenas say of themselves, and what can be chosen for one."""

from ._records import CDescription, COptions, CStats
from .status import ArenaError, Status


@fieldwise_init
struct Residency(Equatable, ImplicitlyCopyable, Writable):
    """Which memory bytes are in."""

    var number: Int32
    """The number in the C ABI."""

    comptime RAM = Self(0)
    """Host pages."""
    comptime VRAM = Self(1)
    """Memory of one device."""

    def __eq__(self, other: Self) -> Bool:
        """Compares two residencies.

        Args:
            other: The one to compare with.

        Returns:
            Whether they are the same.
        """
        return self.number == other.number

    def write_to(self, mut writer: Some[Writer]):
        """Writes RAM or VRAM.

        Args:
            writer: Where to.
        """
        writer.write("VRAM" if self == Self.VRAM else "RAM")


@fieldwise_init
struct Placement(Equatable, ImplicitlyCopyable):
    """Where an arena's blocks are."""

    var number: Int32
    """The number in the C ABI."""

    comptime DEFAULT = Self(0)
    """Where the executor computes."""
    comptime HOST = Self(1)
    """Host pages, for calls on the host."""
    comptime DEVICE = Self(2)
    """Memory of the executor's device."""
    comptime HOST_COHERENT = Self(3)
    """Pinned host pages that the executor's device reaches too, at the same address."""

    def __eq__(self, other: Self) -> Bool:
        """Compares two placements.

        Args:
            other: The one to compare with.

        Returns:
            Whether they are the same.
        """
        return self.number == other.number


@fieldwise_init
struct ArenaDescription(Equatable, ImplicitlyCopyable, Writable):
    """Where an arena's outputs are."""

    var residency: Residency
    """Which memory."""
    var device: Int
    """The device's ordinal, as its driver counts; -1 for host pages, host-coherent ones too."""

    def __init__(out self, record: CDescription):
        """Copies what the library has filled in.

        Args:
            record: The record.
        """
        self.residency = Residency(record.residency)
        self.device = Int(record.device)

    def __eq__(self, other: Self) -> Bool:
        """Compares two descriptions.

        Args:
            other: The one to compare with.

        Returns:
            Whether they are the same.
        """
        return self.residency == other.residency and self.device == other.device

    def write_to(self, mut writer: Some[Writer]):
        """Writes the residency, and the device where there is one.

        Args:
            writer: Where to.
        """
        writer.write(self.residency)
        if self.device >= 0:
            writer.write(" ", self.device)


struct ArenaStats(ImplicitlyCopyable):
    """A reading of an arena's counters."""

    var allocations: UInt64
    """Blocks asked of the driver, and given."""
    var frees: UInt64
    """Blocks given back to the driver."""
    var failed_frees: UInt64
    """Blocks that the driver did not take back, which is tried again."""
    var bytes_reserved: UInt64
    """What the arena has from the driver now."""
    var bytes_used: UInt64
    """What the last call has taken: outputs rounded up to the alignment, and open scratch."""
    var bytes_high_water: UInt64
    """The most that any call had taken at once, or wanted, since the arena was made or trimmed."""
    var rewinds: UInt64
    """Rewinds: each call begun is one."""
    var refused_begins: UInt64
    """Begins, reserves and trims refused as contended."""
    var refused_stale_reads: UInt64
    """Uses of stale views refused."""
    var generation: UInt64
    """The number of the last call."""

    def __init__(out self, record: CStats):
        """Copies what the library has filled in.

        Args:
            record: The record.
        """
        self.allocations = record.allocations
        self.frees = record.frees
        self.failed_frees = record.failed_frees
        self.bytes_reserved = record.bytes_reserved
        self.bytes_used = record.bytes_used
        self.bytes_high_water = record.bytes_high_water
        self.rewinds = record.rewinds
        self.refused_begins = record.refused_begins
        self.refused_stale_reads = record.refused_stale_reads
        self.generation = record.generation


struct ArenaOptions(ImplicitlyCopyable):
    """The choices for a new arena."""

    var alignment: Int
    """The least alignment of every output in bytes: a power of two, at most 4096 on the host and 256 on a device. 0: the
    backend's own, 64 on the host and 256 on a device."""
    var first_capacity: Int
    """The least bytes of the first block. 0: 64 KiB."""
    var byte_limit: Int
    """The most bytes that the arena may have reserved at any instant. 0: no limit."""
    var max_step: Int
    """The most bytes by which a block is larger than the one before. 0: 1 GiB."""
    var placement: Placement
    """Where the blocks are."""
    var scrub: Optional[UInt8]
    """The byte that a rewind fills the room with that the call before wrote; none: what was written is left there."""

    def __init__(
        out self,
        *,
        alignment: Int = 0,
        first_capacity: Int = 0,
        byte_limit: Int = 0,
        max_step: Int = 0,
        placement: Placement = Placement.DEFAULT,
        scrub: Optional[UInt8] = None,
    ):
        """Chooses.

        Args:
            alignment: As the field.
            first_capacity: As the field.
            byte_limit: As the field.
            max_step: As the field.
            placement: As the field.
            scrub: As the field.
        """
        self.alignment = alignment
        self.first_capacity = first_capacity
        self.byte_limit = byte_limit
        self.max_step = max_step
        self.placement = placement
        self.scrub = scrub

    def _record(self) raises ArenaError -> COptions:
        for number in [self.alignment, self.first_capacity, self.byte_limit, self.max_step]:
            if number < 0:
                raise ArenaError(Status.INVALID_ARGUMENT, String("an option is ", number, " bytes"))
        var record = COptions()
        record.alignment = UInt64(self.alignment)
        record.first_capacity = UInt64(self.first_capacity)
        record.byte_limit = UInt64(self.byte_limit)
        record.max_step = UInt64(self.max_step)
        record.placement = self.placement.number
        record.scrub = UInt32(self.scrub.or_else(0))
        record.has_scrub = 1 if self.scrub else 0
        return record^
