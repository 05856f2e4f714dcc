"""Handles of the C ABI."""

from std.memory import ArcPointer

from ._failure import Failure
from ._records import CError, Out
from .library import Loaded
from .status import ArenaError

comptime Free = def(UInt64, Out[CError]) thin abi("C") -> Int32
"""A function that ends a handle."""


struct Handle(Movable):
    """A handle, which ends once, with the library that it is of."""

    var id: UInt64
    """Its number, or 0 after it has ended."""
    var loaded: ArcPointer[Loaded]
    var free: Free

    def __init__(out self, loaded: ArcPointer[Loaded], id: UInt64, free: Free):
        self.id = id
        self.loaded = loaded
        self.free = free

    def __deinit__(deinit self):
        if self.id != 0:
            # What can go wrong here, nobody could do anything about.
            var failure = Failure()
            _ = self.free(self.id, failure.out())

    def end(mut self) raises ArenaError:
        """Ends it, and says how that went."""
        var failure = Failure()
        failure.check(self.free(self.id, failure.out()))
        self.id = 0

    def take(mut self) -> UInt64:
        """Its number, which somebody else ends."""
        var id = self.id
        self.id = 0
        return id
