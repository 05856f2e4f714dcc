"""The steady loop, and what an arena refuses."""

from device_arena import Arena, ArenaError, Executor, Library, Residency, Status, TapeView, View
from kernels import Kernels, embed_by
from std.time import perf_counter_ns
from verbs import Tokens, embed, tokenize

comptime WARM_UP = 3
"""The calls after which no arena asks the driver for anything. The first call outgrows what it has, the second replaces that
by one block; and the two arenas that rows land in take turns."""


struct Engine:
    """Where the verbs compute, and their arenas."""

    var library: Library
    var host: Executor
    var executor: Executor
    var kernels: Optional[Kernels]
    """What makes rows on a GPU; none: the host makes them."""
    var tokens: Arena
    """Where tokens land: on the host, which makes them."""
    var rows: Arena
    """Where the next call's rows land."""
    var kept: Arena
    """Where the rows of the best call so far are. The two change places whenever a call was better."""

    def __init__(out self, library: Library, executor: Executor, var kernels: Optional[Kernels]) raises ArenaError:
        """Nothing is allocated yet."""
        var host = Executor.for_host(library)
        self.library = library
        self.kernels = kernels^
        self.host = host
        self.executor = executor
        self.tokens = Arena(host)
        self.rows = Arena(executor)
        self.kept = Arena(executor)

    def tokenize(self, texts: TapeView) raises ArenaError -> Tokens:
        return tokenize(self.host, texts, self.tokens)

    def embed(self, tokens: Tokens) raises ArenaError -> View[DType.float32]:
        if self.kernels:
            return embed_by(self.kernels.value(), self.library, tokens, self.rows)
        return embed(self.executor, tokens, self.rows)

    def keep_rows(mut self):
        """Keeps the rows of the last call, by giving the next one the other arena."""
        swap(self.rows, self.kept)

    def allocations(self) raises ArenaError -> UInt64:
        return self.tokens.stats().allocations + self.rows.stats().allocations + self.kept.stats().allocations

    def high_water(self) raises ArenaError -> UInt64:
        var first = self.tokens.stats().bytes_high_water
        return first + self.rows.stats().bytes_high_water + self.kept.stats().bytes_high_water


@fieldwise_init
struct Rows(Copyable):
    """What one call of the loop answered, and how many nanoseconds it took."""

    var view: View[DType.float32]
    var call: Int
    var time: Int


struct Outcome(Copyable):
    """What happened in the loop."""

    var calls: Int
    var allocations_warmup: UInt64
    var allocations_steady: UInt64
    var high_water_bytes: UInt64
    var time: Float64
    """The mean of the calls after the warm-up in nanoseconds, or of all where there are none."""
    var best: Rows
    """The rows of the fastest call, kept."""
    var tokens: Tokens
    """Those of the last call."""

    def __init__(out self, mut engine: Engine, texts: TapeView, calls: Int) raises ArenaError:
        """Tokenizes and embeds the whole tape, `calls` times and once at least."""
        self.calls = calls
        var start = perf_counter_ns()
        self.tokens = engine.tokenize(texts)
        self.best = Rows(engine.embed(self.tokens), 1, 0)
        engine.executor.synchronize()
        self.best.time = perf_counter_ns() - start
        var time = self.best.time
        engine.keep_rows()
        self.allocations_warmup = engine.allocations()
        for call in range(2, calls + 1):
            start = perf_counter_ns()
            self.tokens = engine.tokenize(texts)
            var view = engine.embed(self.tokens)
            # A GPU has only been told what to do by now.
            engine.executor.synchronize()
            var rows = Rows(view, call, perf_counter_ns() - start)
            time = rows.time if call == WARM_UP + 1 else time + rows.time
            if call <= WARM_UP or rows.time < self.best.time:
                self.best = rows^
                engine.keep_rows()
            if call <= WARM_UP:
                self.allocations_warmup = engine.allocations()
        self.allocations_steady = engine.allocations() - self.allocations_warmup
        self.high_water_bytes = engine.high_water()
        self.time = Float64(time) / Float64(calls - WARM_UP if calls > WARM_UP else calls)


@fieldwise_init
struct Attempt(Copyable, Writable):
    """What came of a use that has to be refused: nothing where there is nothing to try it on."""

    var refused: Optional[Bool]
    var message: String

    @staticmethod
    def of(attempt: Some[def() raises ArenaError -> None], expected: Status, message: String) -> Self:
        """Tries it. What goes through, or fails in another way, is a defect."""
        try:
            attempt()
        except error:
            if error.status == expected and message in error.message:
                return Self(True, error.message)
        return Self(False, "")

    def write_to(self, mut writer: Some[Writer]):
        if not self.refused:
            writer.write("no device executor")
        elif self.refused.value():
            writer.write("refused: ", self.message)
        else:
            writer.write("NOT REFUSED")


struct Refusals:
    """Uses that an arena has to refuse."""

    var stale: Attempt
    var contended: Attempt
    var wrong_executor: Attempt

    def __init__(out self, engine: Engine, first: View[DType.uint64]) raises ArenaError:
        """Begins a call while somebody reads, then begins one all the same and reads what is gone."""

        def begin() raises ArenaError {imm engine}:
            engine.host.begin(engine.tokens).finish()

        var guard = first.read()
        self.contended = Attempt.of(begin, Status.CONTENDED, "contended")
        guard^.end()
        begin()

        def read() raises ArenaError {imm first}:
            _ = first.to_list()

        self.stale = Attempt.of(read, Status.INVALID_ARGUMENT, "stale")

        def begin_elsewhere() raises ArenaError {imm engine}:
            engine.host.begin(engine.rows).finish()

        self.wrong_executor = Attempt(None, "")
        if engine.rows.describe().residency == Residency.VRAM:
            self.wrong_executor = Attempt.of(begin_elsewhere, Status.INVALID_ARGUMENT, "executor")
