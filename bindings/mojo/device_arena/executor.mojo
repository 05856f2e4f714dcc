"""Where calls compute."""

from std.memory import ArcPointer

from ._failure import Failure, out
from ._handle import Handle
from ._owner import keep, release_owner
from ._records import CDevice
from .arena import Arena
from .call import Call
from .library import Library, Loaded
from .status import ArenaError, Status
from .vendor import Vendor


struct DeviceInfo(Copyable):
    """A device, as its driver describes it."""

    var vendor: Vendor
    """Whose driver."""
    var ordinal: Int
    """The device's number as its driver counts it; 0 for the host."""
    var total_bytes: UInt64
    """Memory in bytes; 0 where the driver does not say."""
    var name: String
    """The driver's name for it."""
    var architecture: String
    """The architecture."""

    def __init__(out self, record: CDevice):
        """Copies what the library has filled in.

        Args:
            record: The record.
        """
        self.vendor = Vendor(record.vendor)
        self.ordinal = Int(record.ordinal)
        self.total_bytes = record.total_bytes
        self.name = String(unsafe_from_utf8_ptr=record.name.unsafe_ptr())
        self.architecture = String(unsafe_from_utf8_ptr=record.architecture.unsafe_ptr())


struct Executor(ImplicitlyCopyable):
    """Where calls compute: the host, or one device together with one stream. Copies are the same executor."""

    var _handle: ArcPointer[Handle]

    @doc_hidden
    def __init__(out self, *, _loaded: ArcPointer[Loaded], _id: UInt64):
        self._handle = ArcPointer(Handle(_loaded, _id, _loaded[].c.executor_free))

    @staticmethod
    def for_host(library: Library) raises ArenaError -> Self:
        """Makes an executor of the host, with a queue of its own.

        Args:
            library: The library.

        Returns:
            The executor.

        Raises:
            UNAVAILABLE without a thread for the queue.
        """
        var id = UInt64(0)
        var failure = Failure()
        ref loaded = library._loaded[]
        failure.check(loaded.c.executor_host(out(id), loaded.id, failure.out()))
        return Self(_loaded=library._loaded, _id=id)

    @staticmethod
    def for_vram(library: Library, ordinal: Int) raises ArenaError -> Self:
        """Makes an executor of a GPU, with a stream of its own.

        Args:
            library: The library.
            ordinal: Which, among all: NVIDIA's come first, then AMD's.

        Returns:
            The executor.

        Raises:
            UNAVAILABLE where there is none of that number, or no driver at all.
        """
        var id = UInt64(0)
        var failure = Failure()
        ref loaded = library._loaded[]
        # No machine has as many as the highest number, which stands for what is no ordinal.
        var number = UInt32(ordinal) if ordinal >= 0 and ordinal < Int(UInt32.MAX) else UInt32.MAX
        failure.check(loaded.c.executor_vram(out(id), loaded.id, number, failure.out()))
        return Self(_loaded=library._loaded, _id=id)

    @staticmethod
    def best(library: Library) raises ArenaError -> Self:
        """Makes an executor of the first GPU that a driver offers, and of the host where no driver or no device exists. Any
        other failure is one, not a slow run.

        Args:
            library: The library.

        Returns:
            The executor.

        Raises:
            DRIVER or UNAVAILABLE for a driver that is there and fails.
        """
        var id = UInt64(0)
        var failure = Failure()
        ref loaded = library._loaded[]
        failure.check(loaded.c.executor_best(out(id), loaded.id, failure.out()))
        return Self(_loaded=library._loaded, _id=id)

    @staticmethod
    def of_vendor(library: Library, vendor: Vendor, ordinal: Int) raises ArenaError -> Self:
        """Makes an executor of one vendor's device.

        Args:
            library: The library.
            vendor: Whose.
            ordinal: Which, as that vendor's driver counts.

        Returns:
            The executor.

        Raises:
            UNAVAILABLE where there is no such driver or device.
        """
        var id = UInt64(0)
        var failure = Failure()
        ref loaded = library._loaded[]
        var number = UInt32(ordinal) if ordinal >= 0 and ordinal < Int(UInt32.MAX) else UInt32.MAX
        failure.check(loaded.c.executor_of_vendor(out(id), loaded.id, vendor.number, number, failure.out()))
        return Self(_loaded=library._loaded, _id=id)

    @staticmethod
    def adopt[
        T: Movable & Deinitable, //
    ](library: Library, vendor: Vendor, stream: Int, var owner: T) raises ArenaError -> Self:
        """Makes an executor on a stream that somebody else has made.

        The caller vouches for the stream: that it is a live one of that vendor, and that it and its context live as long as
        the owner does.

        Parameters:
            T: The type of the owner.

        Args:
            library: The library.
            vendor: Whose stream it is.
            stream: The address that is a `CUstream` or a `hipStream_t`. 0 and the addresses of default streams are refused.
            owner: What keeps the stream alive. It goes when the stream is not used any more.

        Returns:
            The executor.

        Raises:
            INVALID_ARGUMENT for a default stream; UNAVAILABLE without that vendor's driver.
        """
        var id = UInt64(0)
        var failure = Failure()
        ref loaded = library._loaded[]
        var place = keep(owner^)
        var status = loaded.c.executor_adopt(
            out(id), loaded.id, vendor.number, stream, place, release_owner[T], failure.out()
        )
        if status != Status.OK.number:
            release_owner[T](place)
        failure.check(status)
        return Self(_loaded=library._loaded, _id=id)

    def vendor(self) raises ArenaError -> Vendor:
        """Says whose driver the executor computes with.

        Returns:
            The vendor.

        Raises:
            An error where the library fails.
        """
        var number = Int32(0)
        var failure = Failure()
        failure.check(self._handle[].loaded[].c.executor_vendor(self._handle[].id, out(number), failure.out()))
        return Vendor(number)

    def device(self) raises ArenaError -> DeviceInfo:
        """Describes the device that the executor computes on.

        Returns:
            What its driver says of it.

        Raises:
            DRIVER where the driver fails.
        """
        var record = CDevice()
        var failure = Failure()
        failure.check(self._handle[].loaded[].c.executor_describe(self._handle[].id, out(record), failure.out()))
        return DeviceInfo(record)

    def stream(self) raises ArenaError -> Int:
        """Shows the executor's stream to launches and libraries that take one. It lives as long as the executor does.

        Returns:
            The address that is a `CUstream` or a `hipStream_t`; of the host, one that nobody but the library knows.

        Raises:
            An error where the library fails.
        """
        var stream = Int(0)
        var failure = Failure()
        failure.check(self._handle[].loaded[].c.executor_stream(self._handle[].id, out(stream), failure.out()))
        return stream

    def synchronize(self) raises ArenaError:
        """Blocks until everything that is queued on the executor has passed.

        Raises:
            DRIVER for an error of the queued work.
        """
        var failure = Failure()
        failure.check(self._handle[].loaded[].c.executor_synchronize(self._handle[].id, failure.out()))

    def begin(self, arena: Arena) raises ArenaError -> Call:
        """Begins a call, which rewinds the arena: every view of the call before is stale.

        Args:
            arena: Where the call's outputs land.

        Returns:
            The call.

        Raises:
            CONTENDED while a call, an open output, deferred work or a guard holds the arena; INVALID_ARGUMENT for the arena of
            another executor's device.
        """
        return arena._begin(self._handle[].id)

    def begin_timeout(self, arena: Arena, nanoseconds: UInt64) raises ArenaError -> Call:
        """Begins a call, and waits for the arena to be free.

        Args:
            arena: Where the call's outputs land.
            nanoseconds: How long to wait at most.

        Returns:
            The call.

        Raises:
            CONTENDED where it was held all that time; INVALID_ARGUMENT for the arena of another executor's device.
        """
        return arena._begin_timeout(self._handle[].id, nanoseconds)
