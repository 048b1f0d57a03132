"""One browser for all tests of the page, and the pages that they look at."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # for chromium and made_up_reports

import chromium  # noqa: E402
import made_up_reports  # noqa: E402
from msmigrate.reports.html.parity_page import write_html  # noqa: E402


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    if chromium.installed() is None:
        pytest.skip(f"no browser to look at the page with: none of {', '.join(chromium.NAMES)} is installed")
    started = chromium.Browser(tmp_path_factory.mktemp("browser") / "profile")
    yield started
    started.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with faulty.html, clean.html and hostile.html."""
    folder = tmp_path_factory.mktemp("pages")
    write_html(made_up_reports.report(), None, folder / "faulty.html")
    write_html(made_up_reports.report(False), None, folder / "clean.html")
    write_html(made_up_reports.hostile(), None, folder / "hostile.html")
    return folder
