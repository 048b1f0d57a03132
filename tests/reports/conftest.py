"""Lets tests import made_up_reports, whose reports several of them render."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
