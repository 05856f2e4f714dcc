"""Text files as a tape, a line a text."""


@fieldwise_init
struct File(Copyable):
    """A file that was read, and which text is its first."""

    var path: String
    var first: Int


struct Texts(Sized):
    """The lines of all files. Any bytes are a text."""

    var bytes: List[UInt8]
    """The bytes of all texts, without the ends of their lines."""
    var offsets: List[UInt64]
    """Where each text begins in the bytes, and where the last one ends."""
    var files: List[File]

    def __init__(out self):
        self.bytes = List[UInt8]()
        self.offsets = [UInt64(0)]
        self.files = List[File]()

    @staticmethod
    def read(paths: List[String]) raises -> Self:
        """Reads files."""
        var texts = Self()
        for path in paths:
            texts.files.append(File(path, len(texts)))
            with open(path, "r") as file:
                texts._add_lines(file.read_bytes())
        return texts^

    @staticmethod
    def of(text: String) -> Self:
        """Makes one text of a string."""
        var texts = Self()
        texts._add(text.as_bytes())
        return texts^

    def __len__(self) -> Int:
        return len(self.offsets) - 1

    def text(self, index: Int) -> Span[UInt8, origin_of(self.bytes)]:
        """The bytes of one text."""
        return Span(self.bytes)[Int(self.offsets[index]) : Int(self.offsets[index + 1])]

    def place(self, text: Int) -> Tuple[String, Int]:
        """The file that a text is from, and its line, counted from one."""
        var at = len(self.files) - 1
        while self.files[at].first > text:
            at -= 1
        return (self.files[at].path, text - self.files[at].first + 1)

    def excerpt(self, text: Int) -> String:
        """As much of a text as fits a line, with nothing in it that a terminal would obey."""
        comptime WIDTH = 72
        var bytes = self.text(text)
        var cut = String(from_utf8_lossy=bytes[: min(len(bytes), WIDTH * 4)])
        var excerpt = String()
        var count = 0
        for character in String(cut.strip()).codepoints():
            if count == WIDTH:
                break
            var code = character.to_u32()
            var is_control = code < 0x20 or (code >= 0x7F and code < 0xA0)
            excerpt += String("\uFFFD") if is_control else String(character)
            count += 1
        return excerpt^

    def _add_lines(mut self, contents: List[UInt8]):
        var start = 0
        for at in range(len(contents)):
            if contents[at] == UInt8(ord("\n")):
                self._add_line(Span(contents)[start:at])
                start = at + 1
        if start < len(contents):
            self._add_line(Span(contents)[start:])

    def _add_line(mut self, line: Span[UInt8, _]):
        var end = len(line)
        if end > 0 and line[end - 1] == UInt8(ord("\r")):
            end -= 1
        self._add(line[:end])

    def _add(mut self, text: Span[UInt8, _]):
        self.bytes.extend(text)
        self.offsets.append(UInt64(len(self.bytes)))


def grouped(number: UInt64) -> String:
    """`1234567` as `1,234,567`."""
    var digits = String(number)
    var count = digits.byte_length()
    var text = String()
    var left = count
    for digit in digits.codepoints():
        if left % 3 == 0 and left != count:
            text += ","
        text += String(digit)
        left -= 1
    return text^
