"""The engine's verbs. Each takes the arena that its outputs land in, and answers views of them."""

from device_arena import Arena, ArenaError, Executor, PublishedTape, Residency, TapeView, View
from words import DIM, Words, embed_token, normalize


@fieldwise_init
struct Tokens(Copyable):
    """Texts as tokens: a list of strings for each, as Arrow lays it out."""

    var strings: PublishedTape
    """The tokens of all texts."""
    var first: View[DType.uint64]
    """Each text's first token, and at the end how many tokens there are."""


def tokenize(executor: Executor, texts: TapeView, arena: Arena) raises ArenaError -> Tokens:
    """Takes texts apart. How many tokens there are is known only afterwards."""
    var call = executor.begin(arena)
    var first = call.writer[DType.uint64](len(texts) + 1)
    # Tokens are never longer than their texts: only the offsets grow.
    var strings = call.tape_output(bytes=texts.byte_count())
    for index in range(len(texts)):
        first.push(UInt64(len(strings)))
        var words = Words(texts.item(index))
        while True:
            var token = words.next()
            if not token:
                break
            strings.push(token.value())
    first.push(UInt64(len(strings)))
    var tokens = Tokens(strings^.publish(), first^.publish())
    call^.finish()
    return tokens^


def embed(executor: Executor, tokens: Tokens, arena: Arena) raises ArenaError -> View[DType.float32]:
    """Makes one row of `DIM` numbers of each text: its hashed character n-grams, of length one, or zeros for none."""
    # While the guards are held, nobody can rewind the tokens: the rows need an arena of their own.
    var bytes = tokens.strings.bytes.read()
    var offsets = tokens.strings.offsets.read()
    var first = tokens.first.read()
    var call = executor.begin(arena)
    var rows = call.output[DType.float32]((len(first) - 1) * DIM)
    if arena.describe().residency == Residency.RAM:
        write_rows(bytes.span(), offsets.span(), first.span(), rows.span())
    else:
        # The host makes the rows, and the device keeps them. `kernels.mojo` has the verb of an engine with a kernel of its own.
        var made = List[Float32](length=len(rows), fill=0)
        write_rows(bytes.span(), offsets.span(), first.span(), Span(made))
        rows.write(Span(made))
    var view = rows^.publish()
    call^.finish()
    return view^


def write_rows(
    bytes: Span[UInt8, _],
    offsets: Span[UInt64, _],
    first: Span[UInt64, _],
    rows: Span[mut=True, Float32, _],
):
    for text in range(len(first) - 1):
        var row = rows[text * DIM : (text + 1) * DIM]
        # The room shows what an earlier call left there.
        for ref number in row:
            number = 0
        for token in range(Int(first[text]), Int(first[text + 1])):
            embed_token(bytes[Int(offsets[token]) : Int(offsets[token + 1])], row)
        normalize(row)
