"""The main job: an engine that tokenizes and embeds the lines of text files, in arenas.

    mojo run -I bindings/mojo bindings/mojo/examples/embed.mojo --query "one call at a time" README.md

Read `verbs.mojo` next: its two functions are what an engine looks like on this package. `steady.mojo` calls them. It prints
what the Rust example of the same name prints.
"""

from device_arena import Arena, ArenaError, Call, Executor, Library, TapeView, Vendor, View, Work, defer
from kernels import Kernels
from options import HELP, Options
from report import Near, Report
from std.sys import exit, stderr
from steady import Engine, Outcome, Refusals
from texts import Texts
from words import DIM


struct Lengths(Work):
    """Measures texts: their lengths in bytes, ascending."""

    comptime Result = View[DType.uint64]

    var offsets: List[UInt64]

    def __init__(out self, offsets: List[UInt64]):
        self.offsets = offsets.copy()

    def run(mut self, mut call: Call) raises ArenaError -> Self.Result:
        var lengths = call.output[DType.uint64](len(self.offsets) - 1)
        var room = lengths.span()
        for index in range(len(room)):
            room[index] = self.offsets[index + 1] - self.offsets[index]
        sort(room)
        return lengths^.publish()


def nearest(
    mut engine: Engine, library: Library, query: Texts, rows: View[DType.float32]
) raises ArenaError -> List[Near]:
    """The five texts that are nearest to `query` by cosine, the nearest first."""
    # Both arenas are rewound here. The rows to search stay: they are in the arena that is kept.
    var tokens = engine.tokenize(TapeView.of(library, Span(query.bytes), Span(query.offsets)))
    var wanted = engine.embed(tokens).to_list()
    # From a device this is the one copy to the host.
    var numbers = rows.to_list()
    var found = List[Near]()
    for text in range(len(numbers) // DIM):
        # Rows are of length one, so that the product is the cosine.
        var score = Float32(0)
        for index in range(DIM):
            score += numbers[text * DIM + index] * wanted[index]
        if score > 0:
            found.append(Near(text, score))
    var best = List[Near]()
    while len(best) < 5 and len(found) > 0:
        var first = 0
        for index in range(len(found)):
            if found[index].score > found[first].score:
                first = index
        best.append(found.pop(first))
    return best^


def run(options: Options) raises -> String:
    var texts = Texts.read(options.files)
    return report(options, texts)


def report(options: Options, texts: Texts) raises -> String:
    var library = Library()
    var host = Executor.for_host(library)
    # On a GPU if a driver offers one.
    var executor = host if options.host else Executor.best(library)
    var kernels: Optional[Kernels] = None
    if options.kernels and executor.vendor() == Vendor.CUDA:
        kernels = Kernels(executor, options.kernels.value())
    var engine = Engine(library, executor, kernels^)
    var tape = TapeView.of(library, Span(texts.bytes), Span(texts.offsets))
    var outcome = Outcome(engine, tape, options.calls)

    # The worker measures the texts while this thread goes on; until then the arena is the deferred call's.
    var own = Arena(host)
    var lengths = defer(host, own, Lengths(texts.offsets))
    var refusals = Refusals(engine, outcome.tokens.first)
    var near: Optional[List[Near]] = None
    if options.query:
        near = nearest(engine, library, Texts.of(options.query.value()), outcome.best.view)
    var measured = lengths^.wait().to_list()

    var is_kept = outcome.best.view.is_current()
    var report = Report(executor.device(), outcome, is_kept, refusals^, measured^, near^)
    return report.json(texts) + "\n" if options.json else report.table(texts)


def main():
    try:
        var options = Options()
        print(HELP if options.help else run(options), end="")
    except error:
        print("embed:", error, file=stderr)
        exit(1)
