"""The records of the C ABI, as its header lays them out. Made by `symbols.py`."""

from std.sys.info import size_of

comptime Out[T: AnyType] = Pointer[T, MutUnsafeAnyOrigin]
"""A place that a function fills in."""

comptime ABI_VERSION = 1
"""The ABI that the records and functions here are of."""

comptime CWork = def(UInt64, Int) thin abi("C") -> Int32

comptime CRelease = def(Int) thin abi("C") -> None


struct CError(Copyable):
    var status: Int32
    var message: Array[UInt8, 1020]

    def __init__(out self):
        comptime assert size_of[Self]() == 1024, "its size is not C's"
        self.status = 0
        self.message = Array[UInt8, 1020](uninitialized=True)


struct COptions(Copyable):
    var alignment: UInt64
    var first_capacity: UInt64
    var byte_limit: UInt64
    var max_step: UInt64
    var placement: Int32
    var scrub: UInt32
    var has_scrub: UInt32
    var reserved: UInt32

    def __init__(out self):
        comptime assert size_of[Self]() == 48, "its size is not C's"
        self.alignment = 0
        self.first_capacity = 0
        self.byte_limit = 0
        self.max_step = 0
        self.placement = 0
        self.scrub = 0
        self.has_scrub = 0
        self.reserved = 0


struct CDescription(Copyable):
    var residency: Int32
    var device: Int32

    def __init__(out self):
        comptime assert size_of[Self]() == 8, "its size is not C's"
        self.residency = 0
        self.device = 0


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

    def __init__(out self):
        comptime assert size_of[Self]() == 128, "its size is not C's"
        self.allocations = 0
        self.frees = 0
        self.failed_frees = 0
        self.bytes_reserved = 0
        self.bytes_used = 0
        self.bytes_high_water = 0
        self.rewinds = 0
        self.refused_begins = 0
        self.refused_stale_reads = 0
        self.generation = 0
        self.reserved = Array[UInt64, 6](fill=0)


struct CCopy(Copyable):
    var to: UInt64
    var to_first: UInt64
    var `from`: UInt64
    var from_first: UInt64
    var count: UInt64

    def __init__(out self):
        comptime assert size_of[Self]() == 40, "its size is not C's"
        self.to = 0
        self.to_first = 0
        self.`from` = 0
        self.from_first = 0
        self.count = 0


struct CDevice(Copyable):
    var vendor: Int32
    var ordinal: UInt32
    var total_bytes: UInt64
    var name: Array[UInt8, 128]
    var architecture: Array[UInt8, 64]

    def __init__(out self):
        comptime assert size_of[Self]() == 208, "its size is not C's"
        self.vendor = 0
        self.ordinal = 0
        self.total_bytes = 0
        self.name = Array[UInt8, 128](fill=0)
        self.architecture = Array[UInt8, 64](fill=0)


struct CSlot(Copyable):
    var node: UInt64
    var offset: UInt64
    var size: UInt64
    var alignment: UInt64
    var live_start: UInt64
    var live_end: UInt64
    var alias_of: UInt64
    var has_lifetime: UInt32
    var is_alias: UInt32

    def __init__(out self):
        comptime assert size_of[Self]() == 64, "its size is not C's"
        self.node = 0
        self.offset = 0
        self.size = 0
        self.alignment = 0
        self.live_start = 0
        self.live_end = 0
        self.alias_of = 0
        self.has_lifetime = 0
        self.is_alias = 0


struct CPlanDescription(Copyable):
    var nodes: UInt64
    var total: UInt64
    var alignment: UInt64
    var fingerprint: Array[UInt64, 2]

    def __init__(out self):
        comptime assert size_of[Self]() == 40, "its size is not C's"
        self.nodes = 0
        self.total = 0
        self.alignment = 0
        self.fingerprint = Array[UInt64, 2](fill=0)


struct CPointerInfo(Copyable):
    var memory: Int32
    var vendor: Int32
    var device: Int32
    var origin: Int32
    var is_host_accessible: UInt32
    var is_device_accessible: UInt32
    var allocation: UInt64
    var allocation_bytes: UInt64
    var buffer_id: UInt64
    var has_buffer_id: UInt32
    var reserved: UInt32

    def __init__(out self):
        comptime assert size_of[Self]() == 56, "its size is not C's"
        self.memory = 0
        self.vendor = 0
        self.device = 0
        self.origin = 0
        self.is_host_accessible = 0
        self.is_device_accessible = 0
        self.allocation = 0
        self.allocation_bytes = 0
        self.buffer_id = 0
        self.has_buffer_id = 0
        self.reserved = 0


struct CStaged(Copyable):
    var bytes: Int
    var byte_count: UInt64
    var offsets: Int
    var items: UInt64
    var copied_bytes: UInt64

    def __init__(out self):
        comptime assert size_of[Self]() == 40, "its size is not C's"
        self.bytes = 0
        self.byte_count = 0
        self.offsets = 0
        self.items = 0
        self.copied_bytes = 0


struct CTapeDescription(Copyable):
    var items: UInt64
    var bytes: UInt64
    var memory: Int32
    var device: Int32

    def __init__(out self):
        comptime assert size_of[Self]() == 24, "its size is not C's"
        self.items = 0
        self.bytes = 0
        self.memory = 0
        self.device = 0


struct CViewDescription(Copyable):
    var arena: CDescription
    var bytes: UInt64
    var generation: UInt64
    var is_current: UInt32
    var reserved: UInt32

    def __init__(out self):
        comptime assert size_of[Self]() == 32, "its size is not C's"
        self.arena = CDescription()
        self.bytes = 0
        self.generation = 0
        self.is_current = 0
        self.reserved = 0
