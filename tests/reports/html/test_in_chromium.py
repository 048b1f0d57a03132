"""The page in a real browser: it runs under its own policy, fits 1280 pixels and a phone, and does what it offers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import made_up_reports
import pytest
from chromium import Browser
from msmigrate.parity.run_folder import MINDSPORE, TORCH32, TORCH64
from msmigrate.reports.html.parity_page import write_html
from traced import judged, record

ROWS = '[...document.querySelectorAll("#findings tbody tr")]'
FAULTY = made_up_reports.report()


def column(browser: Browser, kind: str) -> list[str]:
    """The cells of a column that are drawn."""
    cells: list[str] = browser.run(f'{ROWS}.map(row => row.querySelector(".c-{kind}").textContent)')
    return cells


def type_filter(browser: Browser, words: str) -> None:
    """Put words into the filter, and wait until the table has followed."""
    browser.run(f'byFilter = document.getElementById("filter"); byFilter.value = {words!r}')
    browser.run('byFilter.dispatchEvent(new Event("input"))')
    browser.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def click(browser: Browser, selector: str) -> None:
    """Click the first element that a CSS selector finds."""
    browser.run(f"document.querySelector({selector!r}).click()")


def test_it_runs_under_its_own_policy_and_asks_for_nothing(browser: Browser, pages: Path) -> None:
    browser.open(pages / "faulty.html")
    assert browser.complaints() == [] and browser.requests() == []
    assert browser.run("document.title") == "No parity: recipes/resnet50.yaml"
    assert len(column(browser, "name")) == 100  # of some hundreds: the others come when they are needed
    browser.run("document.body.append(Object.assign(document.createElement('script'), {text: 'document.title = 1'}))")
    assert browser.run("document.title") != "1" and "Content Security Policy" in browser.complaints()[0]


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (360, 740)])
def test_it_fits_a_screen_and_a_phone(browser: Browser, pages: Path, width: int, height: int) -> None:
    browser.open(pages / "faulty.html", width, height)
    assert browser.run("document.documentElement.scrollWidth") == width


@pytest.mark.full
@pytest.mark.parametrize("name", ["faulty", "clean", "hostile"])
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (768, 1000), (360, 740)])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_fits_every_width(
    browser: Browser, pages: Path, name: str, width: int, height: int, dark: bool, tmp_path: Path
) -> None:
    browser.open(pages / f"{name}.html", width, height, dark)
    assert browser.complaints() == [] and browser.requests() == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    wide = browser.run(
        f"[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > {width} + 1"
        " && e.getBoundingClientRect().width > 2 && !e.closest('.visually-hidden')).map(e => e.outerHTML.slice(0, 99))"
    )
    assert wide == []
    browser.picture(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 10_000


def test_hostile_names_run_nothing_and_are_shown(browser: Browser, pages: Path) -> None:
    browser.open(pages / "hostile.html")
    assert browser.run("document.title").startswith("No parity") and browser.run("document.images.length") == 0
    assert browser.run("document.scripts.length") == 2
    click(browser, "#findings .open")
    name = browser.run("document.querySelector('#findings .detail h3 code').textContent")
    assert name.startswith("</script><script>document.title='owned'")
    browser.run("document.getElementById('plot').focus()")
    browser.press("ArrowRight")
    assert browser.run("document.querySelector('.tip b').textContent") == name
    assert browser.run("document.title") != "owned" and browser.complaints() == []


def test_the_table_sorts_by_any_column(browser: Browser, pages: Path) -> None:
    browser.open(pages / "faulty.html")
    heads = browser.run("[...document.querySelectorAll('#findings th button')].map(b => b.textContent.split(' ')[0])")
    assert heads == ["#", "part", "tensor", "verdict", "ratio", "error", "noise", "allowed", "shape", "why"]
    forward = [f for f in FAULTY.findings if f.stage == "forward"]
    click(browser, "th.c-ratio button")
    assert browser.run("document.querySelector('th.c-ratio').getAttribute('aria-sort')") == "descending"
    by_ratio = sorted(forward, key=lambda f: -(f.ratio or 0.0))
    assert [cell.split(" ")[0] for cell in column(browser, "name")[:9]] == [f.name.split(" ")[0] for f in by_ratio[:9]]
    click(browser, "th.c-ratio button")
    assert browser.run("document.querySelector('th.c-ratio').getAttribute('aria-sort')") == "ascending"
    first = float(column(browser, "ratio")[0])
    assert first == pytest.approx(min(f.ratio for f in forward if f.ratio is not None), rel=0.01)
    for head in heads[1:]:
        click(browser, f"th.c-{'name' if head == 'tensor' else head} button")
        assert len(column(browser, "name")) == 100
    assert browser.complaints() == []


def test_the_table_filters_by_text_verdict_part_and_stage(browser: Browser, pages: Path) -> None:
    browser.open(pages / "faulty.html")
    type_filter(browser, "LAYER2.1 bn2 alone")
    assert column(browser, "name") == ["layer2.1.bn2 output BatchNorm2d"]
    type_filter(browser, "")
    click(browser, "#explore input[value=p]")
    click(browser, "#explore input[value=n]")
    failed = [f for f in FAULTY.findings if f.stage == "forward" and f.verdict.value == "fail"]
    assert set(column(browser, "verdict")) == {"fail"}
    assert browser.run("document.getElementById('count').textContent").startswith(f"{len(failed)} of 2,926 ")
    browser.run("part = document.getElementById('part'); part.value = 'train'; part.dispatchEvent(new Event('change'))")
    assert set(column(browser, "part")) == {"train"}
    click(browser, "a.stage[data-stage=loss]")
    assert set(column(browser, "name")) == {"loss"} and len(column(browser, "name")) == 4
    click(browser, ".tabs button:last-child")
    assert set(column(browser, "stage")) == {"forward"}  # the first hundred of all failed ones
    type_filter(browser, "nothing is called so")
    assert column(browser, "name") == []


def test_all_rows_come_as_they_are_needed_and_quickly(browser: Browser, tmp_path: Path) -> None:
    many = [replace(f, name=f"{n}.{f.name}") for n in range(4) for f in FAULTY.findings]
    write_html(replace(FAULTY, findings=many), None, tmp_path / "many.html")
    browser.open(tmp_path / "many.html")
    took = browser.run(
        "(() => { const began = performance.now(); document.querySelector('.tabs button:last-child').click();"
        " document.querySelector('th.c-ratio button').click(); return performance.now() - began; })()"
    )
    assert took < 5000, f"{took:.0f} ms for {len(many)} tensors"  # 0.2 s, on a machine that does nothing else
    for _ in range(3):
        click(browser, "#more")
    assert len(column(browser, "name")) >= 400


def test_the_tree_unfolds_to_the_faults_and_leads_to_their_tensors(browser: Browser, pages: Path) -> None:
    browser.open(pages / "faulty.html")
    visible = "[...document.querySelectorAll('.tree .chip.own')].filter(e => e.checkVisibility()).length"
    total = "[...document.querySelectorAll('.tree .dot')].filter(e => e.checkVisibility()).length"
    assert browser.run(visible) == 4
    few = browser.run(total)
    click(browser, "[data-tree=all]")
    assert browser.run(total) == 151 > few
    click(browser, "[data-tree=none]")
    assert browser.run(visible) == 1  # the max-pool stands at the first level
    click(browser, "[data-tree=faults]")
    assert browser.run(visible) == 4 and browser.run(total) < 151
    click(browser, ".tree [data-name='layer2.1.bn2']")
    names = column(browser, "name")
    assert names and all(name.startswith("layer2.1.bn2") for name in names)
    assert set(column(browser, "stage")) >= {"init", "forward", "gradients", "update"}


def test_it_works_with_keys_alone(browser: Browser, pages: Path) -> None:
    browser.open(pages / "faulty.html")
    browser.press("Tab")
    assert browser.run("document.activeElement.className") == "skip"
    browser.press("/")
    assert browser.run("document.activeElement.id") == "filter"
    browser.run("document.getElementById('plot').focus()")
    for _ in range(4):
        browser.press("ArrowRight")
    assert browser.run("document.getElementById('told').textContent").startswith("maxpool: fail, ratio 1.8e+04")
    browser.press("End")
    browser.press("Enter")
    assert browser.run("document.querySelector('#detail h3 code').textContent") == "fc output"
    browser.run("document.querySelector('.tree summary').focus()")
    browser.press("Enter")
    assert browser.run("document.querySelector('.tree details').open") is False
    browser.run("document.querySelector('.tabs [aria-selected=true]').focus()")
    browser.press("ArrowRight")
    assert browser.run("document.querySelector('.tabs [aria-selected=true]').textContent").startswith("loss")
    browser.run("document.querySelector('#findings .open').focus()")
    browser.press("Enter")
    assert browser.run("document.querySelector('#findings .detail h3').textContent").startswith("loss")
    unnamed = browser.run(
        "[...document.querySelectorAll('button, select, input, a')].filter(e => !(e.textContent.trim() ||"
        " e.getAttribute('aria-label') || e.closest('label'))).map(e => e.outerHTML)"
    )
    assert unnamed == []


def test_the_plot_tells_the_tensor_under_the_pointer(browser: Browser, pages: Path) -> None:
    browser.open(pages / "faulty.html")
    browser.run("document.getElementById('plot').scrollIntoView({behavior: 'instant'})")
    forward = [f for f in FAULTY.findings if f.stage == "forward"]
    marks = "document.querySelector('.marks.fail').getAttribute('d').match(/M[-0-9.]+ [-0-9.]+/g)"
    failed = [f for f in forward if f.verdict.value == "fail"]
    places = browser.run(f"{marks}.map(m => m.slice(1).split(' ').map(Number))")
    assert len(places) == len(failed)
    corner = "(b => [b.x, b.y])(document.querySelector('#plot svg').getBoundingClientRect())"
    left, top = browser.run(corner)
    for at in (0, len(failed) // 2, len(failed) - 1):
        browser.move(left + places[at][0] + 3.5, top + places[at][1] + 3.5)  # a cross is drawn from its corner
        assert browser.run("document.querySelector('.tip').hidden") is False
        told = browser.run("document.querySelector('.tip').innerText")
        assert told.startswith(f"{failed[at].name}\nforward ({failed[at].part}) {failed[at].module}\nfail, ratio ")
    browser.move(5, 5)
    assert browser.run("document.querySelector('.tip').hidden") is True


def test_a_tensor_shows_how_its_elements_are_off(browser: Browser, tmp_path: Path) -> None:
    names = (TORCH64, TORCH32, MINDSPORE)
    places = {("forward", "train", "conv"): 1e4, ("forward", "train", "fc"): 1.0}
    record(tmp_path, names, places, 1000)
    findings = [judged(tmp_path, names, place) for place in places]
    write_html(replace(FAULTY, findings=findings), tmp_path, tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    assert browser.run("document.querySelectorAll('#detail .bars').length") == 4  # error and noise, and the two keys
    assert browser.run("document.querySelectorAll('#detail tbody tr').length") == 5
    assert "320 elements" in browser.run("document.getElementById('detail').textContent")
    click(browser, "#findings tbody tr:last-child .open")
    assert browser.run("document.querySelectorAll('#findings .detail .bars.error.pass').length") == 2
    assert browser.complaints() == []


def test_it_prints(browser: Browser, pages: Path) -> None:
    browser.open(pages / "faulty.html")
    printed = browser.call("Page.printToPDF", printBackground=True)
    assert len(printed["data"]) > 50_000
    browser.call("Emulation.setEmulatedMedia", media="print")
    hidden = "[...document.querySelectorAll('nav, .controls, .tools')].every(e => !e.checkVisibility())"
    assert browser.run(hidden) and browser.run("document.querySelector('.cause').checkVisibility()")
