"""Arenas: the memory that one call's outputs land in."""

from std.memory import ArcPointer

from ._failure import Failure, out
from ._handle import Handle
from ._records import CDescription, CStats
from .call import Call
from .description import ArenaDescription, ArenaOptions, ArenaStats
from .executor import Executor
from .library import Library, Loaded
from .status import ArenaError


struct Arena(Movable):
    """The memory that one call's outputs land in. Each call rewinds it, so that a steady loop allocates once.

    It is freed, and then lets its executor go, once it and the last of its views are not used any more; or by `close`. (Mojo
    ends a value after its last use: if views did not keep the arena, it would be gone before they are read.)
    """

    var _handle: ArcPointer[Handle]

    def __init__(out self, library: Library) raises ArenaError:
        """Makes an arena of host pages, for calls of the calling thread. Nothing is allocated yet.

        Args:
            library: The library.

        Raises:
            OUT_OF_MEMORY.
        """
        self = Self(library._loaded, library._loaded[].id)

    def __init__(out self, library: Library, options: ArenaOptions) raises ArenaError:
        """Makes an arena of host pages, for calls of the calling thread, with choices.

        Args:
            library: The library.
            options: The choices.

        Raises:
            INVALID_ARGUMENT for a choice that can't be.
        """
        self = Self(library._loaded, library._loaded[].id, options)

    def __init__(out self, executor: Executor) raises ArenaError:
        """Makes an arena of memory where an executor computes. Nothing is allocated yet.

        Args:
            executor: The executor, which the arena keeps.

        Raises:
            OUT_OF_MEMORY.
        """
        self = Self(executor._handle[].loaded, executor._handle[].id)

    def __init__(out self, executor: Executor, options: ArenaOptions) raises ArenaError:
        """Makes an arena for an executor, with choices.

        Args:
            executor: The executor, which the arena keeps.
            options: The choices.

        Raises:
            INVALID_ARGUMENT for a choice that can't be.
        """
        self = Self(executor._handle[].loaded, executor._handle[].id, options)

    @doc_hidden
    def __init__(out self, loaded: ArcPointer[Loaded], source: UInt64) raises ArenaError:
        var id = UInt64(0)
        var failure = Failure()
        failure.check(loaded[].c.init(out(id), source, failure.out()))
        self._handle = ArcPointer(Handle(loaded, id, loaded[].c.free))

    @doc_hidden
    def __init__(out self, loaded: ArcPointer[Loaded], source: UInt64, options: ArenaOptions) raises ArenaError:
        var id = UInt64(0)
        var failure = Failure()
        var record = options._record()
        failure.check(loaded[].c.init_with_options(out(id), source, out(record), failure.out()))
        self._handle = ArcPointer(Handle(loaded, id, loaded[].c.free))

    def describe(self) raises ArenaError -> ArenaDescription:
        """Says where the arena's outputs are.

        Returns:
            The residency and the device.

        Raises:
            An error where the library fails.
        """
        var record = CDescription()
        var failure = Failure()
        failure.check(self._handle[].loaded[].c.describe(self._handle[].id, out(record), failure.out()))
        return ArenaDescription(record)

    def stats(self) raises ArenaError -> ArenaStats:
        """Says what the arena has done so far.

        Returns:
            A reading of its counters.

        Raises:
            An error where the library fails.
        """
        var record = CStats()
        var failure = Failure()
        failure.check(self._handle[].loaded[].c.stats(self._handle[].id, out(record), failure.out()))
        return ArenaStats(record)

    def begin(self) raises ArenaError -> Call:
        """Begins a call where the arena was made for, which rewinds it: every view of the call before is stale.

        Returns:
            The call.

        Raises:
            CONTENDED while a call, an open output, deferred work or a guard holds the arena.
        """
        return self._begin(0)

    def begin_timeout(self, nanoseconds: UInt64) raises ArenaError -> Call:
        """Begins a call where the arena was made for, and waits for the arena to be free.

        Args:
            nanoseconds: How long to wait at most.

        Returns:
            The call.

        Raises:
            CONTENDED where it was held all that time.
        """
        return self._begin_timeout(0, nanoseconds)

    def reserve(self, bytes: Int) raises ArenaError:
        """Makes sure that the next call can take so many bytes without asking the driver. Views of the last call stay current.

        Args:
            bytes: How many.

        Raises:
            OUT_OF_MEMORY or OVER_LIMIT; CONTENDED while somebody holds the arena.
        """
        var failure = Failure()
        failure.check(self._handle[].loaded[].c.reserve(self._handle[].id, UInt64(bytes), failure.out()))

    def trim(self) raises ArenaError -> UInt64:
        """Gives every block back to the driver, and makes every view stale.

        Returns:
            How many bytes were freed.

        Raises:
            CONTENDED while somebody holds the arena.
        """
        var freed = UInt64(0)
        var failure = Failure()
        failure.check(self._handle[].loaded[].c.trim(self._handle[].id, out(freed), failure.out()))
        return freed

    def close(deinit self) raises ArenaError:
        """Frees the arena now, whoever has views of it: they are stale. A call, an output or a guard that is alive goes on, and
        the last of them frees the blocks.

        Raises:
            An error where the library fails.
        """
        self._handle[].end()

    def _begin(self, executor: UInt64) raises ArenaError -> Call:
        var id = UInt64(0)
        var failure = Failure()
        failure.check(self._handle[].loaded[].c.call_begin(out(id), self._handle[].id, executor, failure.out()))
        return Call(self._handle, id)

    def _begin_timeout(self, executor: UInt64, nanoseconds: UInt64) raises ArenaError -> Call:
        var id = UInt64(0)
        var failure = Failure()
        ref c = self._handle[].loaded[].c
        failure.check(c.call_begin_timeout(out(id), self._handle[].id, executor, nanoseconds, failure.out()))
        return Call(self._handle, id)
