"""The records of the C ABI, as its header lays them out. Made by `symbols.py`."""

comptime Out[T: AnyType] = Pointer[T, MutUntrackedOrigin]
"""A place that a function fills in."""

comptime ABI_VERSION = 1
"""The ABI that the records and functions here are of."""

comptime CRelease = def(Int) thin abi("C") -> None


@fieldwise_init
struct CError(Copyable):
    var status: Int32
    var message: Array[UInt8, 1020]


@fieldwise_init
struct COptions(Copyable):
    var alignment: UInt64
    var first_capacity: UInt64
    var byte_limit: UInt64
    var max_step: UInt64
    var placement: Int32
    var scrub: UInt32
    var has_scrub: UInt32
    var reserved: UInt32


@fieldwise_init
struct CDescription(Copyable):
    var residency: Int32
    var device: Int32


@fieldwise_init
struct CStats(Copyable):
    var allocations: UInt64
    var frees: UInt64
    var failed_frees: UInt64
    var bytes_reserved: UInt64
    var bytes_used: UInt64
    var bytes_high_water: UInt64
    var rewinds: UInt64
    var refused_begins: UInt64
    var refused_stale_reads: UInt64
    var generation: UInt64
    var reserved: Array[UInt64, 6]


@fieldwise_init
struct CDevice(Copyable):
    var vendor: Int32
    var ordinal: UInt32
    var total_bytes: UInt64
    var name: Array[UInt8, 128]
    var architecture: Array[UInt8, 64]


@fieldwise_init
struct CTapeDescription(Copyable):
    var items: UInt64
    var bytes: UInt64
    var memory: Int32
    var device: Int32


@fieldwise_init
struct CViewDescription(Copyable):
    var arena: CDescription
    var bytes: UInt64
    var generation: UInt64
    var is_current: UInt32
    var reserved: UInt32
