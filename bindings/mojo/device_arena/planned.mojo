"""Planned arenas: memory whose places a plan fixes."""

from std.memory import ArcPointer
from std.sys.info import size_of

from ._failure import Failure, out
from ._handle import Handle
from ._records import CDescription, CSlot, CStats
from .description import ArenaDescription, ArenaStats, Placement
from .executor import Executor
from .library import Library, Loaded
from .plan import MemoryPlan, Slot
from .run import Run
from .status import ArenaError
from .view import View


struct PlannedArena(Movable):
    """An arena whose places are fixed by a plan: every node has its slot, in every run, and the bytes stay from run to run.

    Nothing is allocated before the first run, and all bytes are zero then. It is freed as an `Arena` is.
    """

    var _handle: ArcPointer[Handle]

    def __init__(out self, library: Library, plan: MemoryPlan) raises ArenaError:
        """Makes a planned arena of host pages.

        Args:
            library: The library.
            plan: The plan.

        Raises:
            INVALID_ARGUMENT for a plan that the host can't hold.
        """
        self = Self(library._loaded, library._loaded[].id, plan, Placement.DEFAULT)

    def __init__(
        out self, executor: Executor, plan: MemoryPlan, placement: Placement = Placement.DEFAULT
    ) raises ArenaError:
        """Makes a planned arena of memory where an executor computes.

        Args:
            executor: The executor, which the arena keeps.
            plan: The plan.
            placement: Where its block is.

        Raises:
            INVALID_ARGUMENT for a placement or a plan that can't be.
        """
        self = Self(executor._handle[].loaded, executor._handle[].id, plan, placement)

    @doc_hidden
    def __init__(
        out self, loaded: ArcPointer[Loaded], source: UInt64, plan: MemoryPlan, placement: Placement
    ) raises ArenaError:
        var id = UInt64(0)
        var failure = Failure()
        ref c = loaded[].c
        failure.check(c.planned_init(out(id), source, plan._handle[].id, placement.number, failure.out()))
        self._handle = ArcPointer(Handle(loaded, id, c.planned_free))

    def describe(self) raises ArenaError -> ArenaDescription:
        """Says where the bytes are.

        Returns:
            The residency and the device.

        Raises:
            An error where the library fails.
        """
        var record = CDescription()
        var failure = Failure()
        failure.check(self._handle[].loaded[].c.planned_describe(self._handle[].id, out(record), failure.out()))
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
        failure.check(self._handle[].loaded[].c.planned_stats(self._handle[].id, out(record), failure.out()))
        return ArenaStats(record)

    def has(self, node: UInt64) raises ArenaError -> Bool:
        """Says whether the plan has a node.

        Args:
            node: The node.

        Returns:
            Whether it has.

        Raises:
            An error where the library fails.
        """
        var has = UInt32(0)
        var failure = Failure()
        failure.check(self._handle[].loaded[].c.planned_has(self._handle[].id, node, out(has), failure.out()))
        return has != 0

    def slot(self, node: UInt64) raises ArenaError -> Slot:
        """Finds a node's slot.

        Args:
            node: The node.

        Returns:
            Where it begins, and how large it is.

        Raises:
            INVALID_ARGUMENT for a node that the plan has not.
        """
        return slot_of(self._handle[], node)

    def elem_offset[dtype: DType](self, node: UInt64) raises ArenaError -> UInt32:
        """Says where a node begins, in values from the arena's start, in the 32 bits of a push constant.

        Parameters:
            dtype: The type of the values.

        Args:
            node: The node.

        Returns:
            The offset.

        Raises:
            INVALID_ARGUMENT where it begins between two values or does not fit, or for a node that the plan has not.
        """
        var offset = UInt32(0)
        var failure = Failure()
        ref c = self._handle[].loaded[].c
        comptime size = UInt32(size_of[Scalar[dtype]]())
        failure.check(c.planned_elem_offset(self._handle[].id, node, size, out(offset), failure.out()))
        return offset

    def elem_offset_64[dtype: DType](self, node: UInt64) raises ArenaError -> UInt64:
        """Says where a node begins, as `elem_offset` does, in 64 bits.

        Parameters:
            dtype: The type of the values.

        Args:
            node: The node.

        Returns:
            The offset.

        Raises:
            INVALID_ARGUMENT where it begins between two values, or for a node that the plan has not.
        """
        var offset = UInt64(0)
        var failure = Failure()
        ref c = self._handle[].loaded[].c
        comptime size = UInt32(size_of[Scalar[dtype]]())
        failure.check(c.planned_elem_offset_64(self._handle[].id, node, size, out(offset), failure.out()))
        return offset

    def begin(self) raises ArenaError -> Run:
        """Begins a run: earlier views are stale, and the bytes are as the last run left them.

        Returns:
            The run.

        Raises:
            CONTENDED while a run, deferred work or a reader holds the arena.
        """
        var id = UInt64(0)
        var failure = Failure()
        failure.check(self._handle[].loaded[].c.run_begin(out(id), self._handle[].id, failure.out()))
        return Run(self._handle, id)

    def begin_timeout(self, nanoseconds: UInt64) raises ArenaError -> Run:
        """Begins a run, and waits for the arena to be free.

        Args:
            nanoseconds: How long to wait at most.

        Returns:
            The run.

        Raises:
            CONTENDED where it was held all that time.
        """
        var id = UInt64(0)
        var failure = Failure()
        ref c = self._handle[].loaded[].c
        failure.check(c.run_begin_timeout(out(id), self._handle[].id, nanoseconds, failure.out()))
        return Run(self._handle, id)

    def last(self) raises ArenaError -> PlannedView:
        """Shows all bytes as the last finished run has left them.

        Returns:
            A view.

        Raises:
            PENDING before the first run has finished.
        """
        var id = UInt64(0)
        var failure = Failure()
        failure.check(self._handle[].loaded[].c.planned_last(out(id), self._handle[].id, failure.out()))
        return PlannedView(self._handle, id)

    def close(deinit self) raises ArenaError:
        """Frees the arena now, whoever has views of its runs: they are stale. A run or a guard that is alive goes on.

        Raises:
            An error where the library fails.
        """
        self._handle[].end()


struct PlannedView(ImplicitlyCopyable):
    """A look at what a run has left in every slot. Once another run has begun, it is stale."""

    var _arena: ArcPointer[Handle]
    var _handle: ArcPointer[Handle]

    @doc_hidden
    def __init__(out self, arena: ArcPointer[Handle], id: UInt64):
        self._arena = arena
        self._handle = ArcPointer(Handle(arena[].loaded, id, arena[].loaded[].c.view_free))

    def slot[dtype: DType](self, node: UInt64) raises ArenaError -> View[dtype]:
        """Shows a node's slot.

        Parameters:
            dtype: The type of the values.

        Args:
            node: The node.

        Returns:
            A view like any other, of as many values as fit.

        Raises:
            INVALID_ARGUMENT for a stale view, or for a node that the plan has not.
        """
        var slot = slot_of(self._arena[], node)
        var count = slot.size // UInt64(size_of[Scalar[dtype]]())
        var bytes = count * UInt64(size_of[Scalar[dtype]]())
        var id = UInt64(0)
        var failure = Failure()
        ref c = self._arena[].loaded[].c
        failure.check(c.view_slice(out(id), self._handle[].id, slot.offset, bytes, failure.out()))
        return View[dtype](self._arena, id, Int(count))


@doc_hidden
def slot_of(arena: Handle, node: UInt64) raises ArenaError -> Slot:
    """A node's slot in a planned arena."""
    var record = CSlot()
    var failure = Failure()
    failure.check(arena.loaded[].c.planned_slot(arena.id, node, out(record), failure.out()))
    return Slot(record)
