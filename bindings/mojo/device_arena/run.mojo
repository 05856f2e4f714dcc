"""Runs: the exclusive use of a planned arena."""

from std.memory import ArcPointer
from std.sys.info import size_of

from ._failure import Failure, out
from ._handle import Handle
from ._memory import address, at
from ._records import CCopy
from .planned import PlannedView
from .status import ArenaError


@fieldwise_init
struct Copy(ImplicitlyCopyable):
    """A copy from one slot to another, counted in values."""

    var to: UInt64
    """The node that is written."""
    var to_first: Int
    """The first value of its slot that is."""
    var source: UInt64
    """The node that is read."""
    var source_first: Int
    """The first value of its slot that is."""
    var count: Int
    """How many values, at most."""


struct Run(Movable):
    """The exclusive use of a planned arena, from its begin to its end.

    Amounts are clamped to what slots hold, and the amount moved is returned; a start beyond a slot is INVALID_ARGUMENT, and so
    is a node that the plan has not. A run that is not finished is abandoned after its last use: the bytes stay as they are.
    """

    var _arena: ArcPointer[Handle]
    var _handle: Handle

    @doc_hidden
    def __init__(out self, arena: ArcPointer[Handle], id: UInt64):
        self._arena = arena
        self._handle = Handle(arena[].loaded, id, arena[].loaded[].c.run_abandon)

    def write[
        dtype: DType
    ](mut self, node: UInt64, values: Span[Scalar[dtype], _], first: Int = 0) raises ArenaError -> Int:
        """Writes values of the host's into a slot.

        Parameters:
            dtype: The type of the values.

        Args:
            node: The node.
            values: The values.
            first: Where in the slot, in values.

        Returns:
            How many were written.

        Raises:
            INVALID_ARGUMENT; DRIVER.
        """
        var moved = UInt64(0)
        var failure = Failure()
        comptime size = UInt32(size_of[Scalar[dtype]]())
        ref c = self._arena[].loaded[].c
        var status = c.run_write(
            self._handle.id, node, UInt64(first), size, address(values), UInt64(len(values)), out(moved), failure.out()
        )
        failure.check(status)
        return Int(moved)

    def read[
        dtype: DType
    ](self, node: UInt64, values: Span[mut=True, Scalar[dtype], _], first: Int = 0) raises ArenaError -> Int:
        """Reads a slot into memory of the host's, from a device too.

        Parameters:
            dtype: The type of the values.

        Args:
            node: The node.
            values: Where to.
            first: From where in the slot, in values.

        Returns:
            How many were read.

        Raises:
            INVALID_ARGUMENT; DRIVER.
        """
        var moved = UInt64(0)
        var failure = Failure()
        comptime size = UInt32(size_of[Scalar[dtype]]())
        ref c = self._arena[].loaded[].c
        var status = c.run_read(
            self._handle.id, node, UInt64(first), size, address(values), UInt64(len(values)), out(moved), failure.out()
        )
        failure.check(status)
        return Int(moved)

    def read_at[dtype: DType](self, first: Int, values: Span[mut=True, Scalar[dtype], _]) raises ArenaError -> Int:
        """Reads from a place of the arena on, across slots, into memory of the host's.

        Parameters:
            dtype: The type of the values.

        Args:
            first: From where in the arena, in values.
            values: Where to.

        Returns:
            How many were read.

        Raises:
            INVALID_ARGUMENT; DRIVER.
        """
        var moved = UInt64(0)
        var failure = Failure()
        comptime size = UInt32(size_of[Scalar[dtype]]())
        ref c = self._arena[].loaded[].c
        var status = c.run_read_at(
            self._handle.id, UInt64(first), size, address(values), UInt64(len(values)), out(moved), failure.out()
        )
        failure.check(status)
        return Int(moved)

    def copy_prefix[dtype: DType](mut self, to: UInt64, source: UInt64, count: Int) raises ArenaError -> Int:
        """Copies the first values of one slot to the start of another. Slots that start together are left as they are.

        Parameters:
            dtype: The type of the values.

        Args:
            to: The node that is written.
            source: The node that is read.
            count: How many values, at most.

        Returns:
            How many were copied.

        Raises:
            INVALID_ARGUMENT; DRIVER.
        """
        var moved = UInt64(0)
        var failure = Failure()
        comptime size = UInt32(size_of[Scalar[dtype]]())
        ref c = self._arena[].loaded[].c
        var status = c.run_copy_prefix(self._handle.id, to, source, size, UInt64(count), out(moved), failure.out())
        failure.check(status)
        return Int(moved)

    def copy_range[dtype: DType](mut self, copy: Copy) raises ArenaError -> Int:
        """Copies values of one slot to another. Where they overlap, it is as if by way of a buffer.

        Parameters:
            dtype: The type of the values.

        Args:
            copy: From where, to where, and how many.

        Returns:
            How many were copied.

        Raises:
            INVALID_ARGUMENT; DRIVER.
        """
        var moved = UInt64(0)
        var failure = Failure()
        comptime size = UInt32(size_of[Scalar[dtype]]())
        ref c = self._arena[].loaded[].c
        failure.check(
            c.run_copy_range(
                self._handle.id,
                copy.to,
                UInt64(copy.to_first),
                copy.source,
                UInt64(copy.source_first),
                size,
                UInt64(copy.count),
                out(moved),
                failure.out(),
            )
        )
        return Int(moved)

    def copies[dtype: DType](mut self, copies: List[Copy]) raises ArenaError -> Int:
        """Makes many copies as one launch. They have no order among themselves.

        Parameters:
            dtype: The type of the values.

        Args:
            copies: From where, to where, and how many, each.

        Returns:
            How many values were copied in all.

        Raises:
            INVALID_ARGUMENT, and nothing is copied, where one writes what another reads or writes; DRIVER.
        """
        var records = List[CCopy](capacity=len(copies))
        for copy in copies:
            var record = CCopy()
            record.to = copy.to
            record.to_first = UInt64(copy.to_first)
            record.`from` = copy.source
            record.from_first = UInt64(copy.source_first)
            record.count = UInt64(copy.count)
            records.append(record^)
        var moved = UInt64(0)
        var failure = Failure()
        comptime size = UInt32(size_of[Scalar[dtype]]())
        ref c = self._arena[].loaded[].c
        failure.check(
            c.run_copies(
                self._handle.id,
                records.unsafe_ptr().as_unsafe_any_origin(),
                UInt64(len(records)),
                size,
                out(moved),
                failure.out(),
            )
        )
        return Int(moved)

    def copy_into(mut self, mut twin: Run) raises ArenaError:
        """Copies all bytes into the run of another arena of an equal plan.

        Args:
            twin: The other run.

        Raises:
            INVALID_ARGUMENT for another plan; DRIVER.
        """
        var failure = Failure()
        ref c = self._arena[].loaded[].c
        failure.check(c.run_copy_into(self._handle.id, twin._handle.id, failure.out()))

    def clear(mut self, node: UInt64) raises ArenaError:
        """Fills a slot with zeros.

        Args:
            node: The node.

        Raises:
            INVALID_ARGUMENT for a node that the plan has not; DRIVER.
        """
        var failure = Failure()
        failure.check(self._arena[].loaded[].c.run_clear(self._handle.id, node, failure.out()))

    def bytes(mut self) raises ArenaError -> Span[UInt8, origin_of(self)]:
        """Shows all bytes to the host, which may write them.

        Returns:
            The arena, which offsets of the plan count from.

        Raises:
            DEVICE for a device's memory; PENDING while a device may use it.
        """
        var data = Int(0)
        var bytes = UInt64(0)
        var failure = Failure()
        failure.check(self._arena[].loaded[].c.run_data(self._handle.id, out(data), out(bytes), failure.out()))
        return Span[UInt8, origin_of(self)](
            unsafe_ptr=at[DType.uint8](data).unsafe_origin_cast[origin_of(self)](), length=Int(bytes)
        )

    def device_pointer[
        dtype: DType
    ](mut self, node: UInt64) raises ArenaError -> Pointer[Scalar[dtype], origin_of(self)]:
        """Shows a slot to a device's kernels, which use it in the order of the executor's stream.

        Parameters:
            dtype: The type of the values.

        Args:
            node: The node.

        Returns:
            The slot's address for the device. The host may not read what it points to.

        Raises:
            INVALID_ARGUMENT for host pages, or for a node that the plan has not.
        """
        var pointer = Int(0)
        var failure = Failure()
        ref c = self._arena[].loaded[].c
        failure.check(c.run_device_pointer(self._handle.id, node, out(pointer), failure.out()))
        return at[dtype](pointer).unsafe_origin_cast[origin_of(self)]()

    def finish(deinit self) raises ArenaError -> PlannedView:
        """Ends the run. It waits for nothing.

        Returns:
            A view of what it has left in every slot.

        Raises:
            An error where the library fails.
        """
        var view = UInt64(0)
        var failure = Failure()
        failure.check(self._arena[].loaded[].c.run_finish(out(view), self._handle.id, failure.out()))
        _ = self._handle.take()
        return PlannedView(self._arena, view)

    def abandon(deinit self) raises ArenaError:
        """Ends the run without a result: the bytes are as it left them.

        Raises:
            An error where the library fails.
        """
        self._handle.end()
