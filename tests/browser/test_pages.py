"""The built book as readers meet it: in Chromium, served from this machine, with the network out of reach."""

import functools
import re
import shutil
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

ROOT = Path(__file__).parents[2]
HTML = ROOT / "_build" / "html"
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text())
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text())
REPOSITORY = CONFIG["repository"]
PAGES = [
    TOC["root"],
    *(
        page["file"]
        for part in TOC["parts"]
        for entry in part["chapters"]
        for page in (entry, *entry.get("sections", ()))
    ),
]
NOTEBOOKS = [page for page in PAGES if (ROOT / f"{page}.ipynb").exists()]
CHAPTERS = [page for page in NOTEBOOKS if re.match(r"book/\d", page)]
SIZES: dict[str, ViewportSize] = {
    "desktop": {"width": 1280, "height": 900},
    "phone": {"width": 390, "height": 844},
}
MAX_BYTES = 2_000_000  # of all that a first visit loads, not compressed
LOADED = """() => ["navigation", "resource"].flatMap(type => performance.getEntriesByType(type))
  .reduce((sum, one) => sum + one.decodedBodySize, 0)"""
FIRST_SCREEN = 700  # pixels of a desktop's window above which the first picture begins
WIDER = """() => {
  const article = document.querySelector("article.bd-article");
  const right = article.getBoundingClientRect().right - parseFloat(getComputedStyle(article).paddingRight);
  const wide = [];
  for (const e of article.querySelectorAll("pre, table, img, mjx-container")) {
    if (!e.checkVisibility() || e.closest(".ledger-index")) continue;  // which has a test of its own
    const box = e.closest("table") ?? e;  // which may scroll
    if (box.matches("table, img") && getComputedStyle(box.parentElement).overflowX === "auto") continue;
    const ink = e.matches("mjx-container") ? e.querySelector("mjx-math, svg") : e;
    const hidden = e.matches("img, mjx-container") ? 0 : e.scrollWidth - e.clientWidth;
    let room = right;  // what a frame or an equation's number leaves of the column
    for (let p = ink.parentElement; p !== article; p = p.parentElement) {
      if (getComputedStyle(p).overflowX !== "visible") room = Math.min(room, p.getBoundingClientRect().right);
    }
    const over = Math.max(ink.getBoundingClientRect().right - room, hidden);
    if (over > 1) wide.push(`${e.tagName} by ${Math.round(over)}: ${e.textContent.slice(0, 60)}`);
  }
  return wide;
}"""
WIDEST = """() => Math.max(  // of the page, whose foot hides what is too wide
  document.documentElement.scrollWidth,
  ...[...document.querySelectorAll(".prev-next-area *")].map(e => e.getBoundingClientRect().right)
) - window.innerWidth"""
KINDS = [CHAPTERS[4], "book/ledger", "book/ledger-ours"]
"""Pages with everything that a page has: a chapter, and the ledger with its badges."""
NOT_OURS = {"definition-list": {"enabled": False}}  # Sphinx sets the arguments of a long signature so
FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]"
IN_SIGHT = """selector => [...document.querySelectorAll(selector)]
  .filter(e => e.tabIndex >= 0 && !e.disabled && e.checkVisibility({visibilityProperty: true}))
  .map((e, i) => { e.dataset.stop = i; return e.outerHTML.slice(0, 200); })"""
FOCUSED = """() => {
  const e = document.activeElement, style = getComputedStyle(e);
  return [e.dataset.stop, style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 1];
}"""
UNFOLD = """() => {
  document.querySelectorAll("details").forEach(one => { one.open = true; });
  document.querySelectorAll(".toggle-hidden").forEach(one => one.classList.remove("toggle-hidden"));
}"""
ONE_OF_EACH_COLOUR = """() => {  // the longest word, since axe does not judge single letters
  const words = [...document.querySelectorAll(".highlight span[class]")], longest = new Map();
  for (const e of words) {
    const colours = e.className + getComputedStyle(e.closest("pre")).backgroundColor;
    if (e.textContent.length > (longest.get(colours)?.textContent.length ?? 0)) longest.set(colours, e);
  }
  const kept = new Set(longest.values());
  words.filter(e => !kept.has(e)).forEach(e => e.replaceWith(e.textContent));
  document.querySelectorAll("mjx-container").forEach(e => e.replaceWith("formula"));
}"""
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
    pytest.mark.skipif(not HTML.exists(), reason="the book is not built: make book"),
]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the built book is served."""
    handler = functools.partial(Quiet, directory=HTML)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=[
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ],
        )
        yield browser
        browser.close()


class Visit:
    """One page in one window, and all that went wrong there."""

    def __init__(self, page: Page, address: str):
        self.page = page
        self.address = address
        self.errors: list[str] = []
        page.on(
            "console", lambda message: self.errors.append(message.text) if message.type == "error" else None
        )
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("response", lambda r: self.errors.append(f"{r.status} {r.url}") if r.status >= 400 else None)
        page.on("request", lambda request: self._stays(request.url))

    def _stays(self, url: str) -> None:
        if not url.startswith((self.address, "data:", "blob:")):
            self.errors.append(f"request to another host: {url}")

    def open(self, name: str) -> Page:
        """Load a page and wait until its equations are set; nothing glides or fades in."""
        self.page.goto(f"{self.address}/{name}.html", wait_until="load")
        self.page.add_style_tag(content="* { transition: none !important; animation: none !important; }")
        self.page.evaluate("() => window.MathJax?.startup?.promise")
        self.page.wait_for_load_state("networkidle")
        return self.page


@pytest.fixture
def desktop(browser: Browser, address: str) -> Iterator[Visit]:
    with browser.new_context(viewport=SIZES["desktop"]) as context:
        context.set_default_timeout(180_000)  # a busy machine sets equations for a minute
        visit = Visit(context.new_page(), address)
        yield visit
    assert not visit.errors


@pytest.mark.parametrize("name", PAGES)
def test_page_renders(desktop: Visit, name: str):
    """At both sizes, of one visit: a page takes seconds to set its equations."""
    page = desktop.open(name)
    assert page.locator("article h1").count() == 1
    check_equations(page)
    check_images(page)
    check_links(page, name)
    if name in CHAPTERS:
        assert page.locator("article figure img").count() >= 1
        assert page.locator("article mjx-container").count() >= 1
        check_launch(page, name)
        first = page.locator("article figure img:visible").first
        assert first.evaluate("e => e.getBoundingClientRect().top + window.scrollY") < FIRST_SCREEN
    assert len(page.locator("meta[name=description]").get_attribute("content") or "") >= 20
    card = page.locator("meta[property='og:image']").get_attribute("content") or ""
    assert (HTML / card.removeprefix(CONFIG["sphinx"]["config"]["ogp_site_url"])).is_file()
    assert page.evaluate(LOADED) <= MAX_BYTES
    assert page.locator("dt.sig", has_text="*args").count() == 0
    # A role, directive or formula that was not understood shows its markup.
    prose = page.locator("article").evaluate(
        "article => { const copy = article.cloneNode(true);"
        " copy.querySelectorAll('pre, code, mjx-container, .highlight').forEach(e => e.remove());"
        " return copy.textContent; }"
    )
    assert not re.search(r"\{[\w:]+\}`|\$\$|:::|\\\w+\{", prose)

    for size, viewport in SIZES.items():
        page.set_viewport_size(viewport)
        assert not page.evaluate(WIDER), f"wider than the column on a {size}"
        widest = page.evaluate(WIDEST)
        assert widest <= 0, f"{widest} pixels wider than a {size}'s window"
    page.evaluate(UNFOLD)
    assert not page.evaluate(WIDER), "wider than the column on a phone, in a solution or a reminder"
    check_accessibility(page, "light", {"runOnly": ["wcag2a", "wcag2aa"], "rules": NOT_OURS})


def check_equations(page: Page) -> None:
    assert page.locator("mjx-container").count() >= page.locator(".math").count()
    assert page.locator("mjx-merror, [data-mjx-error]").count() == 0


def check_images(page: Page) -> None:
    for image in page.locator("article img").all():
        if image.is_visible():  # one in a folded solution, or of another place of a slider, is not
            image.scroll_into_view_if_needed()
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
        assert len(image.get_attribute("alt") or "") >= 20, f"no alt text: {image.get_attribute('src')}"


def check_accessibility(page: Page, theme: str, options: dict) -> None:
    """By rules of axe, with everything unfolded; the last check of a page, which it makes smaller.

    Formulas have the colour of the text that they stand in, and thousands of parts; code has thousands of
    coloured words, in a dozen colours. Axe would measure the contrast of each.
    """
    page.evaluate(UNFOLD)
    page.evaluate(ONE_OF_EACH_COLOUR)
    page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
    options = {"resultTypes": ["violations"], "preload": False} | options
    found = Axe().run(page, options=options)
    assert not found.violations_count, found.generate_report()


def check_links(page: Page, name: str) -> None:
    """To the page before and to the next one."""
    place = PAGES.index(name)
    for link, wanted in (("a.left-prev", PAGES[:place][-1:]), ("a.right-next", PAGES[place + 1 :][:1])):
        found = page.locator(link).evaluate_all("links => links.map(a => a.href)")
        assert [url.rpartition("/")[2] for url in found] == [f"{Path(one).name}.html" for one in wanted]


def check_launch(page: Page, name: str) -> None:
    (link,) = page.locator("a[href*='colab.research.google.com']").evaluate_all(
        "links => links.map(a => a.href)"
    )
    prefix = f"github/{REPOSITORY['url'].removeprefix('https://github.com/')}/blob/{REPOSITORY['branch']}/"
    path = link.partition(prefix)[2]
    assert path == f"{name}.ipynb"
    assert (ROOT / path).is_file()


def test_front_page_shows_the_readme_program_and_what_holds(desktop: Visit):
    page = desktop.open(TOC["root"])
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    shown = page.locator("article div.highlight-python pre").first.text_content() or ""
    assert shown.strip() == program.strip()
    assert page.locator("article .verdict").count() >= 3


@pytest.mark.parametrize("name", KINDS)
def test_dark_theme_has_contrast(desktop: Visit, name: str):
    check_accessibility(desktop.open(name), "dark", {"runOnly": ["color-contrast"]})


@pytest.mark.parametrize("name", KINDS)
def test_keyboard_reaches_everything_and_shows_where_it_is(desktop: Visit, name: str):
    page = desktop.open(name)
    stops = dict(enumerate(page.evaluate(IN_SIGHT, FOCUSABLE)))
    assert len(stops) > 50
    unfolded = 0  # links to sections, which the list of contents shows once the walk comes there
    while stops:
        page.keyboard.press("Tab")
        stop, is_marked = page.evaluate(FOCUSED)
        # `pop` fails where the focus turns in a circle
        element = "a link that was not in sight" if stop is None else stops.pop(int(stop))
        assert is_marked, f"no mark on {element}"
        unfolded += stop is None
        assert unfolded < 100


def test_search_finds_pcn(desktop: Visit):
    page = desktop.page
    page.goto(f"{desktop.address}/search.html?q=pCN")
    # results come one by one, in no order of ours
    page.locator('#search-results li a[href*="04-samplers"]').first.wait_for()
