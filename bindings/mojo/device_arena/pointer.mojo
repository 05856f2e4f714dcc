"""What is behind a pointer."""


@fieldwise_init
struct MemoryKind(Equatable, ImplicitlyCopyable, Writable):
    """The class of memory behind a pointer."""

    var number: Int32
    """The number in the C ABI."""

    comptime UNREGISTERED = Self(0)
    """No driver claims it: pageable host memory, and also freed pointers and ones past an end."""
    comptime PINNED_HOST = Self(1)
    """Host pages that a driver has pinned or registered."""
    comptime DEVICE = Self(2)
    """Memory of one device, or an address that a device alone has for host pages."""
    comptime MANAGED = Self(3)
    """Memory that the driver moves between host and device."""
    comptime UNMAPPED = Self(4)
    """Addresses that a driver has reserved and mapped nothing to."""

    def __eq__(self, other: Self) -> Bool:
        """Compares two classes.

        Args:
            other: The one to compare with.

        Returns:
            Whether they are the same.
        """
        return self.number == other.number

    def write_to(self, mut writer: Some[Writer]):
        """Writes the class's name.

        Args:
            writer: Where to.
        """
        if self == Self.UNREGISTERED:
            writer.write("unregistered")
        elif self == Self.PINNED_HOST:
            writer.write("pinned host memory")
        elif self == Self.DEVICE:
            writer.write("device memory")
        elif self == Self.MANAGED:
            writer.write("managed memory")
        else:
            writer.write("unmapped")
