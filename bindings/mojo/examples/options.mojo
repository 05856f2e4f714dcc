"""The command line."""

from std.sys import argv

comptime HELP = """Embeds the lines of text files, and shows what that asked of the driver.

Usage: embed [OPTIONS] FILE...

  FILE...        the files, of any content
  --query TEXT   print the five lines that are nearest to TEXT
  --host         compute on the host, even where there is a GPU
  --kernels PTX  let an NVIDIA GPU make the rows, by the kernel in this file; else the host makes them for it
  --calls N      how many times to tokenize and embed all lines [default: 50]
  --json         print one line of JSON, and nothing else
  -h, --help     print this
"""


struct Options:
    """What was asked for."""

    var files: List[String]
    var query: Optional[String]
    var kernels: Optional[String]
    var calls: Int
    var host: Bool
    var json: Bool
    var help: Bool

    def __init__(out self) raises:
        """Reads the program's arguments."""
        self.files = List[String]()
        self.query = None
        self.kernels = None
        self.calls = 50
        self.host = False
        self.json = False
        self.help = False
        var arguments = argv()
        var at = 1
        while at < len(arguments):
            var argument = String(arguments[at])
            at += 1
            if argument == "--host":
                self.host = True
            elif argument == "--json":
                self.json = True
            elif argument == "--help" or argument == "-h":
                self.help = True
            elif argument == "--query" or argument == "--calls" or argument == "--kernels":
                if at == len(arguments):
                    raise Error(argument, " takes a value; see --help")
                var value = String(arguments[at])
                at += 1
                if argument == "--query":
                    self.query = value
                elif argument == "--kernels":
                    self.kernels = value
                else:
                    self.calls = calls(value)
            elif argument.startswith("-"):
                raise Error("invalid option '", argument, "'; see --help")
            else:
                self.files.append(argument)
        if not self.files and not self.help:
            raise Error("no file is named; see --help")


def calls(value: String) raises -> Int:
    """A number of 1 or more."""
    try:
        var number = atol(value)
        if number > 0:
            return number
    except:
        pass
    raise Error("--calls takes a number of 1 or more, not '", value, "'; see --help")
