"""Every page in a real browser: axe finds nothing in light and in dark, and the address says what a page shows.

Needs Chromium with its driver, and `pip install selenium axe-core-python`; skipped where one of them is missing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import made_up_reports
import pytest
from msmigrate.reports.html.parity_page import page

webdriver = pytest.importorskip("selenium.webdriver")
wait = pytest.importorskip("selenium.webdriver.support.wait")
axe = pytest.importorskip("axe_core_python.base")
BINARY, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(BINARY is None or DRIVER is None, reason="no Chromium with its driver")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,1000")
DOCS = Path(__file__).parents[3] / "docs" / "examples"
MADE_UP = {
    "faulty": made_up_reports.report,
    "clean": lambda: made_up_reports.report(False),
    "hostile": made_up_reports.hostile,
    "narrowed": lambda: made_up_reports.narrowed("forward", modules=["layer1.*"]),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = BINARY
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in FLAGS:
        options.add_argument(flag)
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield found
    found.quit()


@pytest.fixture(scope="module")
def opened(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Opens a made-up report, or an example of docs/, at an address in it, and expects no error in the console."""
    folder = tmp_path_factory.mktemp("pages")

    def at(name: str, address: str = "") -> Any:
        file = DOCS / name if name.endswith(".html") else folder / f"{name}.html"
        if not file.exists():
            file.write_text(page(MADE_UP[name](), made=[("made", "2026-01-01"), ("host", "a host")]), encoding="utf-8")
        browser.get("about:blank")
        browser.get(f"{file.as_uri()}{address}")
        browser.execute_script("document.documentElement.style.scrollBehavior = 'auto'")
        assert browser.get_log("browser") == []
        return browser

    return at


def first(browser: Any, selector: str) -> Any:
    return browser.find_element("css selector", selector)


def press(browser: Any, selector: str) -> None:
    button = first(browser, selector)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [*MADE_UP, "clean-resnet50.html", "faulty-net.html"])
def test_axe_finds_nothing(name: str, scheme: str, opened: Callable[..., Any]) -> None:
    browser = opened(name)
    dark = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    for item in browser.find_elements("css selector", ".tree details"):
        browser.execute_script("arguments[0].open = true", item)
    browser.execute_script(axe.AXE_SCRIPT)
    told = browser.execute_async_script("axe.run().then(arguments[0])")
    assert told["passes"], "nothing was looked at"
    assert [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in told["violations"]] == []


def test_the_address_says_the_stage_the_filter_and_the_tensor(opened: Callable[..., Any]) -> None:
    browser = opened("faulty")
    press(browser, ".tabs button[value='5']")
    first(browser, "#filter").send_keys("bn1")
    wait.WebDriverWait(browser, 10).until(lambda page: "filter=bn1" in page.execute_script("return location.hash"))
    press(browser, "#findings button.open")
    shown = [first(browser, place).text for place in ("#count", "#detail h3")]
    address = browser.execute_script("return location.hash")
    assert "stage=update" in address and "filter=bn1" in address and "tensor=" in address
    again = opened("faulty", address)
    assert [first(again, place).text for place in ("#count", "#detail h3")] == shown
    assert first(again, "#filter").get_attribute("value") == "bn1"


@pytest.mark.parametrize("address", ["#tensors&stage=nowhere&tensor=99999", "#tensors&tensor=-1", "#tensors&part=%22"])
def test_an_address_that_says_nonsense_is_none(address: str, opened: Callable[..., Any]) -> None:
    assert first(opened("clean", address), "#count").text


def test_links_lead_where_they_say(opened: Callable[..., Any]) -> None:
    browser = opened("faulty")
    for link in ("#environment", "#faults", "#model"):
        press(browser, f"nav a[href='{link}']")
        top = browser.execute_script(f"return document.querySelector('{link}').getBoundingClientRect().top")
        assert 0 <= top < 200, link
    press(browser, ".cause a[href^='#fault-']")
    place = browser.execute_script("return location.hash")
    assert first(browser, place).text.startswith(place.removeprefix("#fault-"))


def test_a_fix_is_copied(opened: Callable[..., Any]) -> None:
    browser = opened("faulty")
    press(browser, "button.copy")
    browser.implicitly_wait(2)
    assert first(browser, "button.copy").text == "copied"


def test_the_tree_leads_to_a_module_s_tensors(opened: Callable[..., Any]) -> None:
    browser = opened("faulty")
    press(browser, ".tree li > .show")
    assert first(browser, ".tabs [aria-selected='true']").text.startswith("all stages")
