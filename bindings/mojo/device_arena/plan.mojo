"""Plans: offsets that are fixed ahead of time for named nodes."""

from std.memory import ArcPointer

from ._failure import Failure, out
from ._handle import Handle
from ._records import CPlanDescription, CSlot, Out
from .library import Library
from .status import ArenaError, Status


struct Slot(ImplicitlyCopyable):
    """One node's place in a planned arena. Offsets, sizes and alignments are bytes; the offset counts from the arena's start.
    """

    var node: UInt64
    """The node, by any number of the caller's."""
    var offset: UInt64
    """Its first byte."""
    var size: UInt64
    """Its size."""
    var alignment: UInt64
    """What its offset is a multiple of: a power of two, or 0 for 1."""
    var lifetime: Optional[Tuple[UInt64, UInt64]]
    """The first step in which its bytes are its own, and the step after the last; none: always."""
    var alias_of: Optional[UInt64]
    """The node whose bytes it shares on purpose."""

    def __init__(
        out self,
        node: UInt64,
        offset: UInt64,
        size: UInt64,
        *,
        alignment: UInt64 = 0,
        lifetime: Optional[Tuple[UInt64, UInt64]] = None,
        alias_of: Optional[UInt64] = None,
    ):
        """Places a node.

        Args:
            node: As the field.
            offset: As the field.
            size: As the field.
            alignment: As the field.
            lifetime: As the field.
            alias_of: As the field.
        """
        self.node = node
        self.offset = offset
        self.size = size
        self.alignment = alignment
        self.lifetime = lifetime
        self.alias_of = alias_of

    @doc_hidden
    def __init__(out self, record: CSlot):
        self = Self(record.node, record.offset, record.size, alignment=record.alignment)
        if record.has_lifetime != 0:
            self.lifetime = (record.live_start, record.live_end)
        if record.is_alias != 0:
            self.alias_of = record.alias_of

    def _record(self) -> CSlot:
        var record = CSlot()
        record.node = self.node
        record.offset = self.offset
        record.size = self.size
        record.alignment = self.alignment
        if self.lifetime:
            record.has_lifetime = 1
            record.live_start = self.lifetime.value()[0]
            record.live_end = self.lifetime.value()[1]
        if self.alias_of:
            record.is_alias = 1
            record.alias_of = self.alias_of.value()
        return record^


struct MemoryPlan(ImplicitlyCopyable):
    """Slots for nodes, checked. Copies are the same plan."""

    var _handle: ArcPointer[Handle]

    def __init__(
        out self, library: Library, slots: List[Slot], *, alignment: UInt64 = 0, total: UInt64 = 0
    ) raises ArenaError:
        """Builds a plan.

        Args:
            library: The library.
            slots: The slots, in any order.
            alignment: What every slot and the arena are aligned to at least, in bytes; 0 for 1.
            total: The arena's size in bytes; 0 for the end of the last slot.

        Raises:
            INVALID_ARGUMENT, and a message that names the slots, for a node that comes twice, a slot that is not aligned or
            ends beyond the total, nodes that share bytes while both are live and are no aliases, and the like.
        """
        var records = List[CSlot](capacity=len(slots))
        for slot in slots:
            records.append(slot._record())
        var id = UInt64(0)
        var failure = Failure()
        ref loaded = library._loaded[]
        failure.check(
            loaded.c.plan_init(
                out(id),
                loaded.id,
                records.unsafe_ptr().as_unsafe_any_origin(),
                UInt64(len(records)),
                alignment,
                total,
                failure.out(),
            )
        )
        self._handle = ArcPointer(Handle(library._loaded, id, loaded.c.plan_free))

    def node_count(self) raises ArenaError -> Int:
        """Counts the nodes.

        Returns:
            How many there are.

        Raises:
            An error where the library fails.
        """
        return Int(self._record().nodes)

    def total(self) raises ArenaError -> UInt64:
        """Says how large an arena of this plan is.

        Returns:
            The bytes that it needs.

        Raises:
            An error where the library fails.
        """
        return self._record().total

    def fingerprint(self) raises ArenaError -> Tuple[UInt64, UInt64]:
        """Says which plan it is: plans that are equal have equal ones, and plans that differ have others.

        Returns:
            The lower and the upper 64 bits.

        Raises:
            An error where the library fails.
        """
        var record = self._record()
        return (record.fingerprint[0], record.fingerprint[1])

    def slot(self, node: UInt64) raises ArenaError -> Slot:
        """Finds a node's slot.

        Args:
            node: The node.

        Returns:
            Its slot.

        Raises:
            INVALID_ARGUMENT for a node that the plan has not.
        """
        var record = CSlot()
        var failure = Failure()
        failure.check(self._handle[].loaded[].c.plan_slot(self._handle[].id, node, out(record), failure.out()))
        return Slot(record)

    def _record(self) raises ArenaError -> CPlanDescription:
        var record = CPlanDescription()
        var failure = Failure()
        failure.check(self._handle[].loaded[].c.plan_describe(self._handle[].id, out(record), failure.out()))
        return record^
