"""Files on the page: uploads, the panel with its previews, and the Library."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import (
    BrowserContext,
    JSHandle,
    Locator,
    Page,
    Request,
    Route,
    expect,
)

from tests.browser.gateway import Gateway
from tests.support.anthropic_server import Reply, When
from tests.support.file_panel import making, opened, panel, title
from tests.support.page_in_browser import (
    PHONE,
    Open,
    Serve,
    accessible,
    choose_mode,
    compare,
    follow,
    is_blocked,
    send,
    session_of,
    status,
)

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

MEGABYTE = 1024 * 1024
REPORT = """\
# Prices

Two of three rivals **cut their prices**.

| company | change |
|---|---|
| Alpha | -8 % |
"""
TABLE = "company,change,note\n" + "".join(
    f'Company {number},-{number % 9} %,"says, it is for good"\n' for number in range(300)
)
CODE = "def average(numbers):\n    return sum(numbers) / len(numbers)\n"
PAGE = (
    "<style>h1 { color: green }</style><h1>Weekly report</h1><p>Alpha follows the spring sale.</p>"
)
DRAWING = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20" width="400" height="200">'
    '<rect width="40" height="20" style="fill:#4b4bc8"/><text x="4" y="13" font-size="8" '
    'style="fill:#ffffff">drawn</text></svg>'
)


def chart(path: Path) -> None:
    """Draw three bars."""
    picture = Image.new("RGB", (640, 360), "#f7f7f9")
    draw = ImageDraw.Draw(picture)
    for at, height in enumerate((220, 130, 60, 180, 95)):
        left = 60 + at * 110
        draw.rectangle((left, 310 - height, left + 70, 310), fill=("#4b4bc8", "#8e8ee6")[at % 2])
    draw.line((40, 310, 600, 310), fill="#55555f", width=2)
    picture.save(path)


def make_files(folder: Path) -> Path:
    """Write a file of each kind."""
    folder.mkdir()
    texts = {
        "report.md": REPORT,
        "prices.csv": TABLE,
        "average.py": CODE,
        "page.html": PAGE,
        "drawing.svg": DRAWING,
        "notes.txt": "First line\nSecond line\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    chart(folder / "chart.png")
    page = Image.new("RGB", (200, 280), "#ffffff")
    page.save(folder / "letter.pdf", save_all=True, append_images=[page])
    (folder / "data.bin").write_bytes(bytes(range(256)))
    return folder


def choose(page: Page, *files: Path) -> None:
    page.locator("input[type=file]").set_input_files(list(files))


def sent_files(gateway: Gateway, session: str) -> list[dict[str, Any]]:
    payload = gateway.events(session)[0]["event"]["payload"]
    files: list[dict[str, Any]] = payload["attachments"]
    return files


@pytest.fixture
def made(serve: Serve, script: Any, enter: Open, tmp_path: Path) -> tuple[Gateway, Page]:
    """A session in which a run made a file of each kind."""
    folder = make_files(tmp_path / "made")
    comment = "# Collect the prices of our rivals, then draw the chart and write the weekly report"
    gateway = serve(script([*making(f"{comment}\ncp {folder}/* output/"), title()]))
    page = enter(gateway)
    follow(page)
    choose_mode(page, "Everything")
    send(page, "make the weekly report")
    status(page, "completed")
    return gateway, page


def test_files_that_a_run_made_are_shown_below_its_answer_and_in_the_panel(
    made: tuple[Gateway, Page], shots: Path
) -> None:
    gateway, page = made
    chips = page.get_by_test_id("run-files")
    expect(chips.get_by_role("listitem")).to_have_count(9)
    rows = panel(page).get_by_role("listitem")
    expect(rows).to_have_count(9)
    expect(page.get_by_role("tab", name="Files")).to_contain_text("9")
    assert compare(page, gateway) > 2
    expect(rows.locator("img")).to_have_count(1)
    accessible(page)
    page.screenshot(path=shots / "files-panel.png")
    page.emulate_media(color_scheme="dark")
    accessible(page)
    page.screenshot(path=shots / "files-panel-dark.png")
    page.reload()
    expect(chips.get_by_role("listitem")).to_have_count(9)
    with page.expect_download() as download:
        chips.get_by_role("button", name="Download average.py").click()
    assert Path(download.value.path()).read_text() == CODE
    assert download.value.suggested_filename == "average.py"
    panel(page)
    with page.expect_download() as archive:
        page.get_by_role("button", name="Download all").click()
    assert Path(archive.value.path()).read_bytes()[:2] == b"PK"


@pytest.mark.slow
def test_every_kind_of_file_has_a_preview(made: tuple[Gateway, Page], shots: Path) -> None:
    _, page = made
    files = panel(page)

    def preview(name: str) -> Locator:
        return opened(page, files, name)

    def close(name: str) -> None:
        accessible(page)
        page.screenshot(path=shots / f"preview-{name}.png")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)

    dialog = preview("chart.png")
    picture = dialog.get_by_role("img", name="chart.png")
    expect(picture).to_be_visible()
    expect(picture).to_have_js_property("naturalWidth", 640)
    close("picture")
    dialog = preview("report.md")
    expect(dialog.get_by_role("heading", name="Prices")).to_be_visible()
    expect(dialog.get_by_role("cell", name="Alpha")).to_be_visible()
    close("markdown")
    dialog = preview("prices.csv")
    expect(dialog.get_by_role("columnheader")).to_have_text(["company", "change", "note"])
    expect(dialog.get_by_role("row")).to_have_count(201)
    expect(dialog.get_by_role("cell", name="says, it is for good").first).to_be_visible()
    expect(dialog.get_by_text("The first 200 rows are shown.")).to_be_visible()
    close("table")
    dialog = preview("average.py")
    expect(dialog.locator("pre")).to_have_text(CODE)
    close("code")
    dialog = preview("page.html")
    frame = dialog.frame_locator("iframe").frame_locator("iframe")
    expect(frame.get_by_role("heading", name="Weekly report")).to_be_visible()
    expect(frame.get_by_role("heading")).to_have_css("color", "rgb(0, 128, 0)")
    assert dialog.locator("iframe").get_attribute("sandbox") == "allow-scripts"
    inner = dialog.frame_locator("iframe").locator("iframe")
    assert inner.get_attribute("sandbox") == ""
    close("html")
    dialog = preview("drawing.svg")
    picture = dialog.get_by_role("img", name="drawing.svg")
    expect(picture).to_be_visible()
    assert picture.evaluate("one => one.naturalWidth") > 0
    close("svg")
    dialog = preview("letter.pdf")
    # pictures of the pages: a browser shows PDF files in no frame that has the attribute `sandbox`
    expect(dialog.get_by_role("img", name="Page 1 of 2")).to_be_visible()
    dialog.get_by_role("button", name="Next page").click()
    expect(dialog.get_by_role("img", name="Page 2 of 2")).to_be_visible()
    expect(dialog.get_by_role("button", name="Next page")).to_be_disabled()
    close("pdf")
    dialog = preview("data.bin")
    expect(dialog.get_by_text("no preview for this kind")).to_be_visible()
    close("unknown")


@pytest.mark.slow
def test_versions_of_a_file_are_collapsed(serve: Serve, script: Any, enter: Open) -> None:
    first = making("echo one > output/a.txt", "first")
    second = making("echo two > output/a.txt", "second")
    page = enter(serve(script([*first, *second, title()])))
    choose_mode(page, "Everything")
    send(page, "first")
    status(page, "completed")
    send(page, "second")
    expect(page.get_by_test_id("run-files")).to_have_count(2)
    files = panel(page)
    expect(files.get_by_role("listitem")).to_have_count(1)
    expect(files.get_by_role("listitem")).to_contain_text("version 2")
    files.get_by_role("button", name="1 earlier version").click()
    expect(files.get_by_role("listitem")).to_have_count(2)
    files.get_by_role("button", name="Open a.txt").last.click()
    expect(page.get_by_role("dialog").locator("pre")).to_have_text("one\n")


@pytest.fixture
def archive(serve: Serve, script: Any, tmp_path: Path) -> Gateway:
    """Thirty files of two sessions."""
    folder = make_files(tmp_path / "made")
    many = "for n in $(seq 10 31); do echo $n > output/log-$n.txt; done"
    replies = [*making(f"cp {folder}/* output/", "weekly"), *making(many, "logs"), title()]
    # the test asks faster than a person may
    gateway = serve(script(replies), SERVER__RATE_LIMIT_BURST="100000")
    for text in ("make the logs", "make the weekly report"):
        task = gateway.task(text, options={"permission_mode": "all"})
        while gateway.ask("GET", f"/api/tasks/{task['task_id']}")["status"] != "completed":
            pass  # each turn is a request
    return gateway


def test_the_library_finds_files_of_all_sessions(
    archive: Gateway, enter: Open, shots: Path
) -> None:
    page = enter(archive)
    page.get_by_role("link", name="Library").click()
    cards = page.get_by_role("button", name=re.compile("^Open "))
    expect(cards).to_have_count(24)
    expect(page).to_have_title(re.compile("^Library"))
    expect(page.locator("main img")).to_have_count(1)
    accessible(page)
    page.screenshot(path=shots / "library.png")
    page.emulate_media(color_scheme="dark")
    accessible(page)
    page.screenshot(path=shots / "library-dark.png")
    page.get_by_role("button", name="Show more").click()
    expect(cards).to_have_count(31)
    expect(page.get_by_role("button", name="Show more")).to_have_count(0)
    page.get_by_role("searchbox", name="Search names and captions").fill("log-1")
    expect(cards).to_have_count(10)
    page.get_by_role("searchbox", name="Search names and captions").fill("nothing like it")
    expect(page.get_by_text("No files match.")).to_be_visible()
    page.get_by_role("searchbox", name="Search names and captions").fill("")
    page.get_by_label("Type").select_option("image")
    expect(cards).to_have_count(2)


@pytest.mark.slow
def test_favourites_and_captions_are_kept(archive: Gateway, enter: Open) -> None:
    page = enter(archive)
    page.goto(f"{archive.url}/library")
    page.get_by_label("Type").select_option("image")
    cards = page.get_by_role("main").get_by_role("listitem")
    expect(cards).to_have_count(2)
    card = cards.filter(has_text="chart.png")
    card.get_by_role("button", name="Add to favourites").click()
    expect(card.get_by_role("button", name="Add to favourites")).to_have_attribute(
        "aria-pressed", "true"
    )
    dialog = opened(page, card, "chart.png")
    dialog.get_by_label("Caption").fill("Prices of this week")
    page.keyboard.press("Enter")
    expect(card).to_contain_text("Prices of this week")
    accessible(page)
    dialog.get_by_role("link").click()
    expect(page.get_by_test_id("run-files").get_by_text("chart.png")).to_be_visible()
    page.reload()
    expect(page.get_by_test_id("run-files").get_by_text("chart.png")).to_be_visible()
    page.goto(f"{archive.url}/library")
    expect(cards).to_have_count(24 + 1)
    page.get_by_role("button", name="Favourites", exact=True).click()
    expect(cards).to_have_count(1)
    page.get_by_role("searchbox", name="Search names and captions").fill("prices of THIS")
    expect(cards).to_contain_text(["chart.png"])


@pytest.mark.slow
def test_the_library_by_keyboard_and_when_it_is_empty(serve: Serve, enter: Open) -> None:
    page = enter(serve())
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Go to a session")).to_be_focused()
    page.keyboard.type("library")
    page.keyboard.press("Enter")
    expect(page.get_by_text("from every session and channel")).to_be_visible()
    accessible(page)
    page.keyboard.press("Tab")
    page.get_by_role("searchbox", name="Search names and captions").focus()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Type")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.get_by_text("No files match.")).to_be_visible()


@pytest.mark.slow
def test_files_and_the_library_on_a_phone(archive: Gateway, enter: Open, shots: Path) -> None:
    page = enter(archive, locale="zh-CN", **PHONE)
    page.goto(f"{archive.url}/library")
    expect(page.locator("main img")).to_have_count(1)
    accessible(page)
    page.screenshot(path=shots / "library-phone.png")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.get_by_role("button", name="打开 chart.png").click()
    expect(page.get_by_role("dialog").get_by_role("img")).to_be_visible()
    accessible(page)
    page.screenshot(path=shots / "preview-phone.png")
    page.get_by_role("dialog").get_by_role("link").click()
    expect(page.get_by_test_id("run-files")).to_be_visible()
    page.get_by_role("button", name="计划、用量与文件").click()
    page.get_by_role("tab", name="文件").click()
    expect(page.get_by_role("tabpanel").locator("img")).to_have_count(1)
    accessible(page)
    page.screenshot(path=shots / "files-phone.png")


@pytest.mark.slow
def test_a_large_upload_shows_progress_is_cancelled_and_continued(
    serve: Serve, enter: Open, tmp_path: Path, shots: Path
) -> None:
    big = tmp_path / "video.bin"
    content = os.urandom(30 * MEGABYTE)
    big.write_bytes(content)
    page = enter(gateway := serve())
    client = page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1}
    client.send("Network.enable")
    client.send("Network.emulateNetworkConditions", {**slow, "uploadThroughput": 8 * MEGABYTE})
    choose(page, big)
    bar = page.get_by_role("progressbar", name="Upload of video.bin")
    expect(bar).to_have_js_property("max", len(content))
    expect(bar).not_to_have_js_property("value", 0)
    accessible(page)
    page.screenshot(path=shots / "upload.png")
    page.get_by_role("button", name="Remove video.bin").click()
    expect(bar).to_have_count(0)
    # chosen again, the upload continues after the bytes on the server
    offsets: list[int] = []
    page.on(
        "request",
        lambda asked: (
            offsets.append(int(re.findall(r"offset=(\d+)", asked.url)[0]))
            if asked.method == "PUT"
            else None
        ),
    )
    client.send("Network.emulateNetworkConditions", {**slow, "uploadThroughput": -1})
    choose(page, big)
    expect(page.get_by_text("30 MB")).to_be_visible()
    assert offsets[0] > 0
    send(page, "hello")
    status(page, "completed")
    [file] = sent_files(gateway, session_of(page))
    assert (file["name"], file["size"]) == ("video.bin", len(content))
    with page.expect_download() as download:
        page.get_by_test_id("thread").get_by_role("button", name="Download video.bin").click()
    assert Path(download.value.path()).read_bytes() == content


@pytest.mark.slow
def test_an_upload_continues_after_the_server_was_killed(
    serve: Serve, enter: Open, tmp_path: Path
) -> None:
    big = tmp_path / "data.bin"
    big.write_bytes(os.urandom(20 * MEGABYTE))
    page = enter(gateway := serve())
    client = page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1}
    client.send("Network.enable")
    client.send("Network.emulateNetworkConditions", {**slow, "uploadThroughput": 4 * MEGABYTE})
    choose(page, big)
    expect(page.get_by_role("progressbar")).not_to_have_js_property("value", 0)
    send(page, "take this")
    expect(page.get_by_text("The message is sent when its files are uploaded.")).to_be_visible()
    gateway.kill()
    expect(page.get_by_text("waiting for the connection")).to_be_visible()
    client.send("Network.emulateNetworkConditions", {**slow, "uploadThroughput": -1})
    gateway.start()
    status(page, "completed")
    [file] = sent_files(gateway, session_of(page))
    assert file["size"] == 20 * MEGABYTE
    expect(page.get_by_label("Message", exact=True)).to_have_value("")


def carrying(page: Page, name: str) -> JSHandle:
    """Return the transfer data of a dragged or pasted file."""
    return page.evaluate_handle(
        """(name) => {
          const given = new DataTransfer();
          given.items.add(new File([name], name, { type: 'text/plain' }));
          return given;
        }""",
        name,
    )


def paste(page: Page, given: JSHandle) -> None:
    page.evaluate(
        """(given) => document.body.dispatchEvent(
             new ClipboardEvent('paste', { clipboardData: given, bubbles: true }))""",
        given,
    )


@pytest.mark.slow
def test_files_are_dropped_anywhere_and_pasted(serve: Serve, enter: Open, shots: Path) -> None:
    page = enter(gateway := serve())
    dropped = carrying(page, "dropped.txt")
    page.dispatch_event("main", "dragover", {"dataTransfer": dropped})
    expect(page.get_by_text("Drop the files to attach them")).to_be_visible()
    accessible(page)
    page.screenshot(path=shots / "drop.png")
    page.dispatch_event("main", "drop", {"dataTransfer": dropped})
    expect(page.get_by_text("Drop the files to attach them")).to_have_count(0)
    expect(page.get_by_role("button", name="Remove dropped.txt")).to_be_visible()
    paste(page, carrying(page, "pasted.txt"))
    expect(page.get_by_role("button", name="Remove pasted.txt")).to_be_visible()
    # the draft keeps uploaded files
    expect(page.get_by_role("progressbar")).to_have_count(0)
    page.reload()
    expect(page.get_by_role("button", name="Remove pasted.txt")).to_be_visible()
    page.get_by_role("button", name="Send", exact=True).click()
    status(page, "completed")
    names = [file["name"] for file in sent_files(gateway, session_of(page))]
    assert names == ["dropped.txt", "pasted.txt"]


@pytest.mark.slow
def test_a_file_is_dropped_before_the_page_is_loaded_completely(
    serve: Serve, context: Callable[..., BrowserContext]
) -> None:
    page = context().new_page()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/assets/files-*.js", hold)
    with page.expect_request("**/assets/files-*.js"):
        page.goto((gateway := serve()).link())
    page.locator("#message").wait_for()
    page.dispatch_event("main", "drop", {"dataTransfer": carrying(page, "early.txt")})
    expect(page.get_by_role("button", name="Remove early.txt")).to_have_count(0)
    send(page, "read the file")
    for route in held:
        route.continue_()
    # the message has waited for its file
    status(page, "completed")
    assert [file["name"] for file in sent_files(gateway, session_of(page))] == ["early.txt"]


DROPPED = """(given) => {
  const drop = new DragEvent('drop', { dataTransfer: given, bubbles: true, cancelable: true });
  return document.body.dispatchEvent(drop);
}"""


def test_a_dropped_file_never_replaces_the_page(serve: Serve, enter: Open) -> None:
    page = enter(serve())
    for link in ("Library", "Waiting"):
        page.get_by_role("link", name=link).click()
        expect(page.get_by_role("heading", name=link)).to_be_visible()
        opens_file = page.evaluate(DROPPED, carrying(page, "a.txt"))
        assert not opens_file


def test_cells_of_a_spreadsheet_are_pasted_as_text(serve: Serve, enter: Open) -> None:
    page = enter(serve())
    cells = carrying(page, "image.png")
    for kind, text in {"text/plain": "1\t2", "text/html": "<table></table>"}.items():
        cells.evaluate("(given, [kind, text]) => given.setData(kind, text)", [kind, text])
    paste(page, cells)
    paste(page, carrying(page, "second.txt"))
    expect(page.get_by_role("button", name=re.compile("^Remove "))).to_have_count(1)


@pytest.mark.slow
def test_a_file_of_exactly_the_largest_size_is_sent(
    serve: Serve, enter: Open, tmp_path: Path
) -> None:
    largest = tmp_path / "largest.bin"
    with largest.open("wb") as file:
        file.truncate(100 * MEGABYTE)
    page = enter(gateway := serve())
    choose(page, largest)
    expect(page.get_by_role("list", name="Attached files")).to_contain_text("100 MB")
    send(page, "hello")
    status(page, "completed")
    [sent] = sent_files(gateway, session_of(page))
    assert sent["size"] == 100 * MEGABYTE


@pytest.mark.slow
def test_files_that_cannot_be_attached_are_named(serve: Serve, enter: Open, tmp_path: Path) -> None:
    page = enter(serve())
    large, empty = tmp_path / "large.bin", tmp_path / "empty.txt"
    with large.open("wb") as file:
        file.truncate(100 * MEGABYTE + 1)
    empty.touch()
    choose(page, large)
    expect(page.get_by_role("alert")).to_have_text("large.bin is larger than 100 MB.")
    choose(page, empty)
    expect(page.get_by_role("alert")).to_have_text("empty.txt is empty.")
    many = [tmp_path / f"{number}.txt" for number in range(52)]
    for path in many:
        path.write_text(path.name)
    choose(page, *many)
    expect(page.get_by_role("alert")).to_contain_text("at most 50 files")
    expect(page.get_by_role("list", name="Attached files").get_by_role("listitem")).to_have_count(
        50
    )


def test_a_refused_upload_can_be_repeated(serve: Serve, enter: Open, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("a")
    page = enter(serve())
    refused = '{"error": {"code": "too_large", "message": "The store is full.", "request_id": ""}}'

    def refuse(route: Route) -> None:
        route.fulfill(status=413, body=refused, content_type="application/json")

    page.route("**/api/attachments?*", refuse)
    choose(page, file)
    expect(page.get_by_text("The store is full.")).to_be_visible()
    send(page, "hello")
    expect(page.get_by_role("alert")).to_contain_text("a.txt was not uploaded")
    page.unroute("**/api/attachments?*")
    page.get_by_role("button", name="Upload a.txt again").click()
    expect(page.get_by_text("The store is full.")).to_have_count(0)
    page.get_by_role("button", name="Send", exact=True).click()
    status(page, "completed")


@pytest.mark.slow
def test_a_file_that_changes_while_it_waits_is_named(
    serve: Serve, enter: Open, tmp_path: Path
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("first")
    page = enter(gateway := serve())
    # what loads the page is still answered
    page.route("**/api/attachments?*", lambda route: route.abort())
    choose(page, file)
    expect(page.get_by_text("waiting for the connection")).to_be_visible()
    file.write_text("second, longer")
    expect(page.get_by_text("read a.txt. It was moved or changed")).to_be_visible()
    page.unroute("**/api/attachments?*")
    page.get_by_role("button", name="Remove a.txt").click()
    choose(page, file)
    expect(page.get_by_role("progressbar")).to_have_count(0)
    send(page, "hello")
    status(page, "completed")
    assert [one["size"] for one in sent_files(gateway, session_of(page))] == [14]


@pytest.mark.slow
def test_a_link_shows_the_run_that_made_a_file(serve: Serve, script: Any, enter: Open) -> None:
    long = "\n\n".join(f"Paragraph {number}" for number in range(80))
    later = Reply(text=long, when=When(last_user="later"))
    page = enter(gateway := serve(script([*making("echo 1 > output/a.txt"), later, title()])))
    choose_mode(page, "Everything")
    send(page, "make a file")
    status(page, "completed")
    files = page.get_by_test_id("run-files")
    expect(files).to_be_visible()
    send(page, "later")
    expect(page.get_by_text("Paragraph 79")).to_be_in_viewport()
    expect(files).not_to_be_in_viewport()
    opened(page, panel(page), "a.txt").get_by_role("link").click()
    expect(files).to_be_in_viewport()
    page.goto(f"{gateway.url}/library")
    opened(page, page.get_by_role("main"), "a.txt").get_by_role("link").click()
    expect(files).to_be_in_viewport()


HOSTILE = {
    "page.html": "<body onload='top.ran=1'><script>top.ran=1</script><meta http-equiv=refresh "
    "content='0;url=http://foreign.example/hostile'><img src=/hostile><form action=/hostile>"
    "<button>shown</button></form><style>@import url(/hostile)</style><iframe src=/hostile>",
    "frame.svg": '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    ' onload="top.ran=1"><script>top.ran=1</script><image xlink:href="/hostile"/><image '
    'href="http://foreign.example/hostile"/><foreignObject><iframe xmlns='
    '"http://www.w3.org/1999/xhtml" src="/hostile"/></foreignObject><text y="20">shown</text>'
    "</svg>",
    "broken.svg": "<svg onload='top.ran=1'><script>top.ran=1</script>shown",
    "text.md": "<script>top.ran=1</script><img src=/hostile onerror='top.ran=1'> ![x](/hostile) "
    "shown",
    "cells.csv": "<img src=/hostile onerror=top.ran=1>,shown\n=HYPERLINK(1),\u202ereversed\n",
    "script.js": "top.ran=1; // shown",
    "picture.png": "<script>top.ran=1</script>",
    "a<img src=hostile onerror=top.ran=1>.txt": "shown",
    "gnp\u202e\u2066fdp.txt": "shown",
}


@pytest.mark.slow
def test_hostile_files_run_nothing_and_load_nothing(
    serve: Serve, script: Any, context: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    for name, text in HOSTILE.items():
        (folder / name).write_text(text, encoding="utf-8")
    gateway = serve(script([*making(f"cp {folder}/* output/"), title()]))
    opened_context = context()
    requests: list[Request] = []

    def note(asked: Request) -> None:
        requests.append(asked)

    opened_context.on("request", note)
    page = opened_context.new_page()
    page.goto(gateway.link())
    choose_mode(page, "Everything")
    send(page, "make files")
    status(page, "completed")
    files = panel(page)
    expect(files.get_by_role("listitem")).to_have_count(len(HOSTILE))
    accessible(page)
    for button in files.get_by_role("button", name=re.compile("^Open ")).all():
        name = button.locator(".isolate-text").inner_text()
        assert not re.search("[\u202e\u2066]", name)
        button.click()
        dialog = page.get_by_role("dialog")
        if name.endswith(".html"):
            frame = dialog.frame_locator("iframe").frame_locator("iframe")
            expect(frame.get_by_text("shown")).to_be_visible()
        elif name == "frame.svg":
            expect(dialog.get_by_role("img", name=name)).to_be_visible()
        else:
            expect(dialog.get_by_text(re.compile("shown|no preview")).first).to_be_visible()
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
    page.goto(f"{gateway.url}/library")
    expect(page.get_by_role("button", name=re.compile("^Open "))).to_have_count(len(HOSTILE))
    assert page.evaluate("window.ran") is None
    loaded = [asked.url for asked in requests if not is_blocked(asked)]
    assert [url for url in loaded if url.endswith("hostile")] == []
    assert page.locator(".hostile, img[src=hostile]").count() == 0


def test_changed_files_of_the_workspace_have_a_diff_and_are_undone(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    page = enter(
        serve(script([*making("mkdir src; printf 'one\\ntwo\\n' > src/notes.txt"), title()]))
    )
    follow(page)
    choose_mode(page, "Everything")
    send(page, "make the weekly report")
    status(page, "completed")
    files = panel(page)
    row = files.get_by_role("list", name="Changed files").get_by_role("button")
    expect(row).to_have_text("src/notes.txtnew+2")
    files.get_by_role("button", name="Workspace").click()
    folder = files.get_by_role("button", name="src", exact=True)
    expect(folder).to_be_visible()
    files.get_by_label("Search files by name").fill("NOTES")
    found = files.get_by_role("button", name=re.compile("notes.txt.* B$"))
    expect(found).to_be_visible()
    found.click()
    preview = page.get_by_role("dialog", name="src/notes.txt")
    expect(preview.locator("pre")).to_contain_text("two")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    accessible(page)
    page.screenshot(path=shots / "changed-files.png")
    row.click()
    change = page.get_by_role("dialog", name="src/notes.txt")
    expect(change.locator("pre")).to_contain_text("+two")
    accessible(page)
    page.screenshot(path=shots / "changed-file.png")
    change.get_by_role("button", name="Undo this change").click()
    expect(change.get_by_text("undone")).to_be_visible()
    expect(change.get_by_role("button", name="Undo this change")).to_have_count(0)
    change.get_by_role("button", name="Close").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(row).to_contain_text("undone")


def test_the_file_of_the_first_example_of_the_readme_is_listed(serve: Serve, enter: Open) -> None:
    page = enter(serve())
    follow(page)
    choose_mode(page, "Edit files")
    send(page, "write a haiku about lark to notes.md")
    status(page, "completed")
    row = panel(page).get_by_role("list", name="Changed files").get_by_role("button")
    expect(row).to_have_text("notes.mdnew+3")


@pytest.mark.slow
def test_a_workspace_with_large_folders_and_odd_names_is_read_and_never_left(
    serve: Serve, script: Any, enter: Open
) -> None:
    make = (
        "mkdir .cache; (cd .cache; seq -f %05g.txt 10000 | xargs touch); ln -s /etc out;"
        " mkdir 报告; echo 销售 > 报告/三月.md; echo hidden > .hidden; echo KEY=1 > .env"
    )
    page = enter(serve(script([*making(make), title()])))
    follow(page)
    choose_mode(page, "Everything")
    send(page, "make the weekly report")
    status(page, "completed")
    workspace = page.get_by_role("button", name="Workspace", exact=True)
    files = panel(page).locator("section").filter(has=workspace)
    files.get_by_role("button", name="Workspace", exact=True).click()
    many = files.get_by_role("button", name=".cache", exact=True)
    expect(many).to_be_visible()
    many.click()
    expect(files.get_by_text("00001.txt", exact=True)).to_be_visible()
    expect(files.get_by_text("Not everything is listed")).to_be_visible()
    many.click()
    expect(files.get_by_text("00001.txt", exact=True)).to_have_count(0)
    # a link out of the workspace and a file with secrets are named, and open nothing
    for name in ("out", ".env"):
        expect(files.get_by_text(name, exact=True).last).to_be_visible()
        expect(
            files.get_by_role("button", name=re.compile(f"^{re.escape(name)}( |$)"))
        ).to_have_count(0)
    files.get_by_role("button", name=re.compile(r"^\.hidden .* B$")).click()
    hidden = page.get_by_role("dialog", name=".hidden")
    expect(hidden.locator("pre")).to_contain_text("hidden")
    page.keyboard.press("Escape")
    expect(hidden).to_have_count(0)
    search = files.get_by_label("Search files by name")
    search.fill("三月")
    found = files.get_by_role("button", name="报告/三月.md")
    expect(found).to_be_visible()
    found.click()
    expect(page.get_by_role("dialog", name="报告/三月.md")).to_contain_text("销售")
