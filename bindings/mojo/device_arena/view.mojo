"""Views: read-only looks at published outputs, and the guards of those who read them."""

from std.memory import ArcPointer

from ._failure import Failure, out
from ._handle import Handle
from ._memory import address, at, byte_count
from ._records import CViewDescription
from .description import ArenaDescription
from .executor import Executor
from .status import ArenaError


struct View[dtype: DType](ImplicitlyCopyable, Sized):
    """A typed, read-only look at a published output. Copies are the same view.

    Once its arena has begun another call, or was closed, the view is stale, and every use of it is INVALID_ARGUMENT. It keeps
    its arena's memory.

    Parameters:
        dtype: The type of the values.
    """

    var _arena: ArcPointer[Handle]
    var _handle: ArcPointer[Handle]
    var _count: Int

    @doc_hidden
    def __init__(out self, arena: ArcPointer[Handle], id: UInt64, count: Int):
        self._arena = arena
        self._handle = ArcPointer(Handle(arena[].loaded, id, arena[].loaded[].c.view_free))
        self._count = count

    def __len__(self) -> Int:
        """Counts the values.

        Returns:
            How many there are, or were.
        """
        return self._count

    def describe(self) raises ArenaError -> ArenaDescription:
        """Says where the values are; those of a stale view too.

        Returns:
            The description of the view's arena.

        Raises:
            An error where the library fails.
        """
        return ArenaDescription(self._record().arena)

    def generation(self) raises ArenaError -> UInt64:
        """Says which call published the view.

        Returns:
            The number of the call.

        Raises:
            An error where the library fails.
        """
        return self._record().generation

    def is_current(self) raises ArenaError -> Bool:
        """Says whether the arena is at the view's call still. Only a guard keeps it so.

        Returns:
            Whether it is.

        Raises:
            An error where the library fails.
        """
        return self._record().is_current != 0

    def read(self) raises ArenaError -> ReadGuard[Self.dtype]:
        """Holds the values for reading on the host: no call can begin until the guard has gone.

        Returns:
            The guard.

        Raises:
            INVALID_ARGUMENT for a stale view; DEVICE for a device's memory; PENDING before the call has finished.
        """
        var id = UInt64(0)
        var data = Int(0)
        var bytes = UInt64(0)
        var failure = Failure()
        ref c = self._arena[].loaded[].c
        failure.check(c.view_read_begin(out(id), self._handle[].id, out(data), out(bytes), failure.out()))
        return ReadGuard[Self.dtype](Handle(self._arena[].loaded, id, c.view_read_end), data, self._count)

    def read_on(self, executor: Executor) raises ArenaError -> DeviceGuard[Self.dtype]:
        """Holds the values for work on a device, whose stream is ordered after the work of the view's call. No call can begin
        until the guard has gone, and the next one's work waits for what the reader has queued by then.

        Args:
            executor: Where they are read.

        Returns:
            The guard.

        Raises:
            INVALID_ARGUMENT for a stale view, and for host pages.
        """
        var id = UInt64(0)
        var pointer = Int(0)
        var failure = Failure()
        ref c = self._arena[].loaded[].c
        var reader = executor._handle[].id
        failure.check(c.view_device_pointer(out(id), self._handle[].id, reader, out(pointer), failure.out()))
        return DeviceGuard[Self.dtype](Handle(self._arena[].loaded, id, c.view_read_end), pointer, self._count)

    def to_list(self) raises ArenaError -> List[Scalar[Self.dtype]]:
        """Copies all values to the host, from a device's memory too. It waits for the work of the view's call.

        Returns:
            A copy of one's own.

        Raises:
            INVALID_ARGUMENT for a stale view; PENDING before the call has finished; DRIVER for an error of the call's work.
        """
        var values = List[Scalar[Self.dtype]](length=self._count, fill=0)
        self.copy_to(Span(values))
        return values^

    def copy_to(self, values: Span[mut=True, Scalar[Self.dtype], _]) raises ArenaError:
        """Copies all values to memory of the host's, from a device's too. It waits for the work of the view's call.

        Args:
            values: Where to: as many as the view has.

        Raises:
            INVALID_ARGUMENT for a stale view, or for another number of values; PENDING before the call has finished; DRIVER
            for an error of the call's work.
        """
        var failure = Failure()
        var bytes = byte_count[Self.dtype](len(values))
        ref c = self._arena[].loaded[].c
        failure.check(c.view_copy_to_host(self._handle[].id, address(values), bytes, failure.out()))

    def slice(self, start: Int, end: Int) raises ArenaError -> Self:
        """Shows some of the values.

        Args:
            start: The first of them.
            end: The first after them.

        Returns:
            A view of theirs.

        Raises:
            INVALID_ARGUMENT for a stale view, and for values that are not there.
        """
        # A start that is negative, or behind the end, is far beyond any view.
        var is_range = start >= 0 and start <= end
        var first = byte_count[Self.dtype](start) if is_range else UInt64(Int.MAX)
        var bytes = byte_count[Self.dtype](end - start) if is_range else UInt64(0)
        var id = UInt64(0)
        var failure = Failure()
        ref c = self._arena[].loaded[].c
        failure.check(c.view_slice(out(id), self._handle[].id, first, bytes, failure.out()))
        return Self(self._arena, id, end - start)

    def _record(self) raises ArenaError -> CViewDescription:
        var record = CViewDescription()
        var failure = Failure()
        failure.check(self._arena[].loaded[].c.view_describe(self._handle[].id, out(record), failure.out()))
        return record^


struct ReadGuard[dtype: DType](Movable, Sized):
    """What a reader on the host holds: the values stay, and no call can begin.

    It ends with a `with`, or by `end`, or else after its last use. What `span` shows keeps it. Where errors are typed, Mojo 1.2.0
    refuses a `with` whose block raises nothing: name the guard there, and end it by `end`.

    Parameters:
        dtype: The type of the values.
    """

    var _handle: Handle
    var _data: Int
    var _count: Int

    @doc_hidden
    def __init__(out self, var handle: Handle, data: Int, count: Int):
        self._handle = handle^
        self._data = data
        self._count = count

    def __enter__(self) -> Span[Scalar[Self.dtype], ImmOrigin(origin_of(self))]:
        """Holds the values for the block of a `with`.

        Returns:
            The values.
        """
        return self.span()

    def __exit__(mut self) raises ArenaError:
        """Ends the reading at the end of the block.

        Raises:
            An error where the library fails.
        """
        self._handle.end()

    def __len__(self) -> Int:
        """Counts the values.

        Returns:
            How many there are.
        """
        return self._count

    def span(self) -> Span[Scalar[Self.dtype], ImmOrigin(origin_of(self))]:
        """Shows the values.

        Returns:
            The values, which hold as long as the guard, and keep it.
        """
        comptime Origin = ImmOrigin(origin_of(self))
        return Span[Scalar[Self.dtype], Origin](
            unsafe_ptr=at[Self.dtype](self._data).unsafe_mut_cast[False]().unsafe_origin_cast[Origin](),
            length=self._count,
        )

    def end(deinit self) raises ArenaError:
        """Ends the reading here.

        Raises:
            An error where the library fails.
        """
        self._handle.end()


struct DeviceGuard[dtype: DType](Movable, Sized):
    """What a reader on a device holds: the values stay, and no call can begin.

    It ends with a `with`, or by `end`, or else after its last use: it has to live until the work that reads is queued.

    Parameters:
        dtype: The type of the values.
    """

    var _handle: Handle
    var _pointer: Int
    var _count: Int

    @doc_hidden
    def __init__(out self, var handle: Handle, pointer: Int, count: Int):
        self._handle = handle^
        self._pointer = pointer
        self._count = count

    def __enter__(self) -> Pointer[Scalar[Self.dtype], ImmOrigin(origin_of(self))]:
        """Holds the values for the block of a `with`.

        Returns:
            Their address for the device.
        """
        return self.device_pointer()

    def __exit__(mut self) raises ArenaError:
        """Ends the reading at the end of the block.

        Raises:
            An error where the library fails.
        """
        self._handle.end()

    def __len__(self) -> Int:
        """Counts the values.

        Returns:
            How many there are.
        """
        return self._count

    def device_pointer(self) -> Pointer[Scalar[Self.dtype], ImmOrigin(origin_of(self))]:
        """Shows the values to a device's kernels.

        Returns:
            Their address for the device, which keeps the guard. The host may not read what it points to.
        """
        comptime Origin = ImmOrigin(origin_of(self))
        return at[Self.dtype](self._pointer).unsafe_mut_cast[False]().unsafe_origin_cast[Origin]()

    def end(deinit self) raises ArenaError:
        """Ends the reading, once the work that reads is queued.

        Raises:
            An error where the library fails.
        """
        self._handle.end()
