"""Whose driver."""


@fieldwise_init
struct Vendor(Equatable, ImplicitlyCopyable, Writable):
    """Whose driver."""

    var number: Int32
    """The number in the C ABI."""

    comptime HOST = Self(0)
    """The operating system and the processor's own memory."""
    comptime CUDA = Self(1)
    """NVIDIA's driver."""
    comptime ROCM = Self(2)
    """AMD's runtime, HIP."""

    def __eq__(self, other: Self) -> Bool:
        """Compares two vendors.

        Args:
            other: The one to compare with.

        Returns:
            Whether they are the same.
        """
        return self.number == other.number

    def write_to(self, mut writer: Some[Writer]):
        """Writes the vendor's name.

        Args:
            writer: Where to.
        """
        if self == Self.CUDA:
            writer.write("cuda")
        elif self == Self.ROCM:
            writer.write("rocm")
        else:
            writer.write("host")
