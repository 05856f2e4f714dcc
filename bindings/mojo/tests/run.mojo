"""Runs all tests, on the host, or on the GPU that DEVICE_ARENA_VRAM names by its number."""

import arenas
import deferred_calls
import libraries
import planned_arenas
import tapes
import threads
import views
import within
from backend import named_backend
from device_arena import Library
from std.sys import exit
from std.testing import TestSuite
from std.testing.suite import TestSuiteReport


def report(var suite: TestSuite) raises -> TestSuiteReport:
    """Runs a suite."""
    try:
        var report = suite.generate_report()
        suite^.abandon()
        return report^
    except error:
        suite^.abandon()
        raise error^


def main() raises:
    print("backend:", named_backend(Library()))
    var passed = 0
    var failed = 0
    var reports: List[_] = [
        report(TestSuite.discover_tests[libraries.TESTS]()),
        report(TestSuite.discover_tests[arenas.TESTS]()),
        report(TestSuite.discover_tests[views.TESTS]()),
        report(TestSuite.discover_tests[within.TESTS]()),
        report(TestSuite.discover_tests[deferred_calls.TESTS]()),
        report(TestSuite.discover_tests[tapes.TESTS]()),
        report(TestSuite.discover_tests[planned_arenas.TESTS]()),
        report(TestSuite.discover_tests[threads.TESTS]()),
    ]
    for report in reports:
        print(report)
        passed += report.passed
        failed += report.failures
    print(passed, "passed,", failed, "failed")
    if failed > 0 or passed == 0:
        exit(1)
