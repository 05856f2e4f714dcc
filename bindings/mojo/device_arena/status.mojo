"""What a refusal says: a status that can be compared, and a line of text."""


@fieldwise_init
struct Status(Equatable, ImplicitlyCopyable, Writable):
    """What the library answers. The numbers are those of the C ABI, and stable."""

    var number: Int32
    """The number in the C ABI."""

    comptime OK = Self(0)
    """It did what it was asked for."""
    comptime INVALID_ARGUMENT = Self(1)
    """A stale view, an arena or a call that has ended, a wrong executor, a bad tape, a null pointer; a range, a size or an
    option that can't be."""
    comptime DEVICE = Self(2)
    """Host access to a device's memory."""
    comptime CONTENDED = Self(3)
    """Somebody else holds the arena. The refusal changed nothing."""
    comptime OUT_OF_MEMORY = Self(4)
    """The driver or the system has no memory of that size."""
    comptime OVER_LIMIT = Self(5)
    """The arena's own limits: bytes, readers, outputs."""
    comptime UNAVAILABLE = Self(6)
    """No library, no driver, no device, no worker thread."""
    comptime PENDING = Self(7)
    """Not yet: the call has not finished, or its work has not passed."""
    comptime DRIVER = Self(8)
    """A driver's call or deferred work failed."""
    comptime INTERNAL = Self(9)
    """A fault of the library, caught at its border."""

    def __eq__(self, other: Self) -> Bool:
        """Compares two statuses.

        Args:
            other: The one to compare with.

        Returns:
            Whether they are the same.
        """
        return self.number == other.number

    def write_to(self, mut writer: Some[Writer]):
        """Writes the status's name, such as CONTENDED.

        Args:
            writer: Where to.
        """
        if self == Self.OK:
            writer.write("OK")
        elif self == Self.INVALID_ARGUMENT:
            writer.write("INVALID_ARGUMENT")
        elif self == Self.DEVICE:
            writer.write("DEVICE")
        elif self == Self.CONTENDED:
            writer.write("CONTENDED")
        elif self == Self.OUT_OF_MEMORY:
            writer.write("OUT_OF_MEMORY")
        elif self == Self.OVER_LIMIT:
            writer.write("OVER_LIMIT")
        elif self == Self.UNAVAILABLE:
            writer.write("UNAVAILABLE")
        elif self == Self.PENDING:
            writer.write("PENDING")
        elif self == Self.DRIVER:
            writer.write("DRIVER")
        elif self == Self.INTERNAL:
            writer.write("INTERNAL")
        else:
            writer.write("status ", self.number)


@fieldwise_init
struct ArenaError(Copyable, Writable):
    """What this package's functions raise.

    A function that `raises ArenaError` keeps the status; in one that just `raises`, it becomes an `Error` of the same text.
    """

    var status: Status
    """The kind of refusal."""
    var message: String
    """What was refused, and why: one line."""

    def write_to(self, mut writer: Some[Writer]):
        """Writes the message.

        Args:
            writer: Where to.
        """
        writer.write(self.message)
