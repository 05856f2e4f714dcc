"""What a token is, and what number it adds to a row."""

from std.math import sqrt

comptime DIM = 256
"""How many numbers a row has."""


struct Words[origin: ImmOrigin]:
    """Goes through a text's tokens: words, and every other visible byte on its own. Any bytes are a text: what is not
    ASCII counts as letters."""

    var text: Span[UInt8, Self.origin]
    var at: Int

    def __init__(out self, text: Span[UInt8, Self.origin]):
        self.text = text
        self.at = 0

    def next(mut self) -> Optional[Span[UInt8, Self.origin]]:
        """The next token, if there is one."""
        while self.at < len(self.text) and is_space(self.text[self.at]):
            self.at += 1
        if self.at == len(self.text):
            return None
        var start = self.at
        self.at += 1
        if is_letter(self.text[start]):
            while self.at < len(self.text) and is_letter(self.text[self.at]):
                self.at += 1
        return self.text[start : self.at]


def embed_token(token: Span[UInt8, _], row: Span[mut=True, Float32, _]):
    """Adds the token's n-grams of three to five characters to a row; a whole token that is shorter is one. Bytes stand for
    characters, so that any file is a text."""
    for start in range(len(token)):
        # FNV-1a
        var hash = UInt64(0xCBF29CE484222325)
        for length in range(1, min(5, len(token) - start) + 1):
            hash = (hash ^ UInt64(lower(token[start + length - 1]))) * 0x100000001B3
            if length >= 3 or (start == 0 and length == len(token)):
                # The product's high bits depend on every byte. Signs let those that share a place cancel out.
                var mixed = hash * 0x9E3779B97F4A7C15
                row[Int((mixed >> 32) % DIM)] += Float32(1) if mixed >> 63 == 0 else Float32(-1)


def normalize(row: Span[mut=True, Float32, _]):
    """Makes a row's length one, where it has any."""
    var squares = Float32(0)
    for x in row:
        squares += x * x
    var length = sqrt(squares)
    if length > 0:
        for ref x in row:
            x /= length


def is_letter(byte: UInt8) -> Bool:
    return (
        byte >= 0x80
        or (byte >= UInt8(ord("a")) and byte <= UInt8(ord("z")))
        or (byte >= UInt8(ord("A")) and byte <= UInt8(ord("Z")))
        or (byte >= UInt8(ord("0")) and byte <= UInt8(ord("9")))
    )


def is_space(byte: UInt8) -> Bool:
    return byte == 0x20 or byte == 0x09 or byte == 0x0A or byte == 0x0C or byte == 0x0D


def lower(byte: UInt8) -> UInt8:
    return byte + 32 if byte >= UInt8(ord("A")) and byte <= UInt8(ord("Z")) else byte
