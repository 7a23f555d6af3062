"""Bitwuzla of the Python package as a process that speaks SMT-LIB on its standard streams.

smtbmc starts solvers by name, and the package brings no program: `verif.formal.solver` writes one
that runs this module.
"""

import sys

from bitwuzla import Options, Parser, TermManager


def commands(lines):
    """Complete top-level expressions of SMT-LIB text, comments left out."""
    text, depth = [], 0
    for line in lines:
        quoted = False
        for position, character in enumerate(line):
            if character == "|":
                quoted = not quoted
            elif quoted:
                continue
            elif character == ";":
                line = line[:position] + "\n"
                break
            else:
                depth += (character == "(") - (character == ")")
        text.append(line)
        if depth == 0:
            if "".join(text).strip():
                yield "".join(text)
            text = []


def main():
    if "--help" in sys.argv:
        print("--lang")  # by which smtbmc knows versions from 0.3 on
        return
    options = Options()
    parser = Parser(TermManager(), options)
    for command in commands(sys.stdin):
        if command.startswith("(set-info"):
            continue
        if command.startswith("(exit"):
            return
        parser.parse(command, parse_only=False, parse_file=False)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
