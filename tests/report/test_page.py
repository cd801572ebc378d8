"""The report in a real browser, without a window and without a network."""

import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from digits import INT8_MODEL

from vitral.cli import main
from vitral.program import MemoryModel
from vitral.report.page import report_page
from vitral.report.run import ReportRun, record_run, sample_feeds

selenium = pytest.importorskip("selenium", reason="selenium drives the browser")
from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--window-size=1200,1000"),
)
needs_browser = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="Debian's chromium and chromium-driver are not installed"
)


@pytest.fixture(scope="module")
def run() -> ReportRun:
    import vitral

    module = vitral.compile(INT8_MODEL)
    return record_run(module, sample_feeds(module), memory=MemoryModel())


@pytest.fixture(scope="module")
def page(run: ReportRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report_page(run, "digits <int8>"))
    return path


def open_browser(folder: Path, *flags: str) -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER or ""
    for flag in (*FLAGS, f"--user-data-dir={folder}", *flags):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(DRIVER))


@pytest.fixture(scope="module")
def browser(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    driver = open_browser(tmp_path_factory.mktemp("profile"))
    driver.get(page.as_uri())
    yield driver
    driver.quit()


def test_nothing_is_fetched(page: Path) -> None:
    text = page.read_text()
    for sign in ("<script", "<link", "<img", "@import", "url(http", "src="):
        assert sign not in text
    assert text.count("<svg ") == 5


def test_names_are_escaped(page: Path) -> None:
    text = page.read_text()
    assert "digits <int8>" not in text
    assert "digits &lt;int8&gt;" in text


def test_the_same_run_gives_the_same_page(run: ReportRun, page: Path) -> None:
    assert report_page(run, "digits <int8>") == page.read_text()


@needs_browser
def test_the_browser_has_nothing_to_complain_about(browser: webdriver.Chrome) -> None:
    assert browser.title == "digits <int8> on Vitral"
    assert browser.get_log("browser") == []  # pyright: ignore[reportAttributeAccessIssue]


@needs_browser
def test_every_picture_is_drawn_and_labelled(browser: webdriver.Chrome) -> None:
    pictures = browser.find_elements(By.CSS_SELECTOR, "figure > svg")
    assert len(pictures) == 5
    for picture in pictures:
        assert picture.size["width"] > 700
        assert picture.size["height"] > 80
        assert picture.get_attribute("role") == "img"
        assert len(picture.get_attribute("aria-label") or "") > 20
    text = "".join(picture.text for picture in pictures)
    for words in ("conv1", "MACs per cycle", "roofline", "waiting for memory", "instructions"):
        assert words in text


@needs_browser
def test_the_table_has_all_layers_and_their_cycles(
    browser: webdriver.Chrome, run: ReportRun
) -> None:
    rows = browser.find_elements(By.CSS_SELECTOR, "tbody tr")
    cells = [[c.text for c in row.find_elements(By.TAG_NAME, "td")] for row in rows]
    assert [row[0] for row in cells] == [layer.name for layer in run.profile]
    shown = [row[4].replace(",", "") for row in cells]
    assert shown == ["–" if x.cycles is None else str(x.cycles) for x in run.profile]
    heads = browser.find_elements(By.CSS_SELECTOR, "thead th[scope=col]")
    assert len(heads) == len(cells[0])


@needs_browser
def test_nothing_is_wider_than_the_window(browser: webdriver.Chrome) -> None:
    """Also on a telephone; the table scrolls on its own."""
    for width in (1200, 420):
        browser.set_window_size(width, 900)
        script = "return [document.documentElement.scrollWidth, window.innerWidth]"
        content, window = browser.execute_script(script)  # pyright: ignore[reportGeneralTypeIssues]
        assert content <= window


CONTRAST = """
const luminance = text => {
  const parts = text.match(/[0-9.]+/g).slice(0, 3).map(x => {
    const v = x / 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]; };
const style = (name, kind) => getComputedStyle(document.querySelector(name))[kind];
const card = luminance(style('section', 'backgroundColor'));
const ratio = x => (Math.max(x, card) + 0.05) / (Math.min(x, card) + 0.05);
const text = (name, kind) => ratio(luminance(style(name, kind)));
return [card, text('h2', 'color'), text('figcaption', 'color'), text('figure svg text', 'fill')];
"""


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable(page: Path, tmp_path: Path, scheme: str) -> None:
    """Contrast of headings, captions and the pictures' text: 4.5 to 1, as WCAG asks."""
    driver = open_browser(tmp_path)
    try:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        driver.get(page.as_uri())
        card, *ratios = driver.execute_script(CONTRAST)  # pyright: ignore[reportGeneralTypeIssues]
        assert (card > 0.5) == (scheme == "light")
        assert min(ratios) >= 4.5
        size = struct.unpack(">II", driver.get_screenshot_as_png()[16:24])
        assert size[0] >= 1000
    finally:
        driver.quit()


def test_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "digits.html"
    assert main(["report", str(INT8_MODEL), "-o", str(output)]) == 0
    assert "layers" in capsys.readouterr().out
    assert output.read_text().startswith("<!doctype html>")
