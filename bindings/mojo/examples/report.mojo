"""What is printed: a table, or one line of JSON."""

from device_arena import DeviceInfo, Vendor
from steady import WARM_UP, Attempt, Outcome, Refusals
from texts import Texts, grouped
from words import DIM


@fieldwise_init
struct Near(Copyable):
    """A text, and how near to the query it is."""

    var text: Int
    var score: Float32


struct Report(Movable):
    """What there is to say."""

    var device: DeviceInfo
    var outcome: Outcome
    var is_kept: Bool
    var refusals: Refusals
    var lengths: List[UInt64]
    """Every text's length in bytes, ascending."""
    var nearest: Optional[List[Near]]
    """The texts that are nearest to the query, where there was one."""

    def __init__(
        out self,
        device: DeviceInfo,
        outcome: Outcome,
        is_kept: Bool,
        var refusals: Refusals,
        var lengths: List[UInt64],
        var nearest: Optional[List[Near]],
    ):
        self.device = device.copy()
        self.outcome = outcome.copy()
        self.is_kept = is_kept
        self.refusals = refusals^
        self.lengths = lengths^
        self.nearest = nearest^

    def json(self, texts: Texts) -> String:
        ref outcome = self.outcome
        var line = String('{"executor":"', self.device.vendor, '","texts":', len(texts))
        line += String(',"tokens":', len(outcome.tokens.strings), ',"calls":', outcome.calls)
        line += String(',"allocations_warmup":', outcome.allocations_warmup)
        line += String(',"allocations_steady":', outcome.allocations_steady)
        line += String(',"high_water_bytes":', outcome.high_water_bytes)
        line += String(',"stale_refused":', json_of(self.refusals.stale))
        line += String(',"contended_refused":', json_of(self.refusals.contended))
        line += String(',"wrong_executor_refused":', json_of(self.refusals.wrong_executor))
        if self.nearest:
            line += ',"nearest":['
            var comma = ""
            for near in self.nearest.value():
                var place = texts.place(near.text)
                line += String(
                    comma, '{"score":', Float64(near.score), ',"file":', quoted(place[0]), ',"line":', place[1]
                )
                line += String(',"text":', quoted(texts.excerpt(near.text)), "}")
                comma = ","
            line += "]"
        return line + "}"

    def table(self, texts: Texts) -> String:
        ref outcome = self.outcome
        ref best = outcome.best
        var table = String()
        table += row("executor", self.executor())
        table += row("texts", grouped(UInt64(len(texts))))
        table += row("tokens", grouped(UInt64(len(outcome.tokens.strings))))
        table += row("calls", String(grouped(UInt64(outcome.calls)), ", warm-up: ", min(WARM_UP, outcome.calls)))
        var before = outcome.allocations_warmup
        table += row("driver allocations", String(before, " in warm-up, ", outcome.allocations_steady, " after"))
        table += row("high water", String(grouped(outcome.high_water_bytes), " bytes"))
        table += row("time a call", duration(outcome.time))
        table += row("best call", String("number ", best.call, ", ", duration(Float64(best.time))))
        var kept = "readable still" if self.is_kept else "lost"
        table += row("kept result", String(len(best.view) // DIM, " rows of ", DIM, ", ", kept))
        table += row("deferred call", self.measured())
        table += row("stale read", String(self.refusals.stale))
        table += row("contended begin", String(self.refusals.contended))
        table += row("wrong executor", String(self.refusals.wrong_executor))
        if self.nearest:
            table += nearest_lines(self.nearest.value(), texts)
        return table^

    def executor(self) -> String:
        if self.device.vendor == Vendor.HOST:
            return String(self.device.vendor)
        return String(self.device.vendor, " ", self.device.ordinal, ", ", self.device.name)

    def measured(self) -> String:
        if not self.lengths:
            return "there is no text"
        var median = self.lengths[len(self.lengths) // 2]
        return String("a text has ", median, " bytes (median), ", self.lengths[len(self.lengths) - 1], " at most")


def nearest_lines(nearest: List[Near], texts: Texts) -> String:
    if not nearest:
        return "\nno line is near the query\n"
    var lines = String("\nscore  line\n")
    for near in nearest:
        var place = texts.place(near.text)
        lines += String(
            fixed(Float64(near.score), 3), "  ", place[0], ":", place[1], ": ", texts.excerpt(near.text), "\n"
        )
    return lines^


def row(name: String, value: String) -> String:
    return String(name, " " * (20 - name.byte_length()), value, "\n")


def json_of(attempt: Attempt) -> String:
    if not attempt.refused:
        return "null"
    return "true" if attempt.refused.value() else "false"


def quoted(text: String) -> String:
    """A string of JSON's."""
    var line = String('"')
    for character in text.codepoints():
        var code = character.to_u32()
        if code == UInt32(ord('"')) or code == UInt32(ord("\\")):
            line += "\\"
            line += String(character)
        elif code < 0x20:
            line += String("\\u00", "0" if code < 0x10 else "1", "0123456789abcdef"[byte=Int(code % 16)])
        else:
            line += String(character)
    return line + '"'


def fixed(number: Float64, digits: Int) -> String:
    """A number that is not negative, with so many digits behind the point."""
    var scale = 10**digits
    var whole = Int(round(number * Float64(scale)))
    var rest = String(whole % scale)
    return String(whole // scale, ".", "0" * (digits - rest.byte_length()), rest)


def duration(nanoseconds: Float64) -> String:
    if nanoseconds < 1e3:
        return String(fixed(nanoseconds, 1), "ns")
    if nanoseconds < 1e6:
        return String(fixed(nanoseconds / 1e3, 1), "µs")
    if nanoseconds < 1e9:
        return String(fixed(nanoseconds / 1e6, 1), "ms")
    return String(fixed(nanoseconds / 1e9, 1), "s")
