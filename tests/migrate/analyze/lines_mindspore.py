"""Runs a file of lines, lines_mindspore.py FILE, as a fork of a process that has imported MindSpore."""

import runpy
import sys

runpy.run_path(sys.argv[1], run_name="__main__")
