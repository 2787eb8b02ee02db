"""A browser that keeps pages open and notes when a text comes into them.

    shown.py JOB < commands

JOB is a JSON document: the `browser`, its `pages` by name, a `link` to open before them, what to
`press` in each, and the `mark`, which a number and a stop follow. It says "ready" when the pages
stand, and when its input ends it prints one JSON line: by page, by number, when that was first
there, in ms by the clock of this machine.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

# no page waits for another machine
_ALONE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
_LOOK = """mark => {
  const found = new RegExp(mark + "(\\\\d+)[.]", "g");
  window.shown = {};
  const look = (node) => {
    for (const [, at] of node.textContent.matchAll(found)) window.shown[at] ??= Date.now();
  };
  new MutationObserver((changes) => {
    for (const { type, target, addedNodes } of changes) (type === "childList" ? addedNodes : [target]).forEach(look);
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""


def main() -> None:
    job = json.loads(sys.argv[1])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=job["browser"], args=[_ALONE])
        pages = _opened(browser, job)
        print("ready", flush=True)
        sys.stdin.read()  # pages live on without us
        print(
            json.dumps({name: page.evaluate("shown") for name, page in pages.items()}), flush=True
        )
        browser.close()


def _opened(browser: Browser, job: dict[str, Any]) -> dict[str, Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    if job["link"]:
        context.new_page().goto(job["link"])
    return {name: _page(context, address, job) for name, address in job["pages"].items()}


def _page(context: BrowserContext, address: str, job: dict[str, Any]) -> Page:
    page = context.new_page()
    page.goto(address)
    if job["press"]:
        page.click(job["press"])
    page.evaluate(_LOOK, job["mark"])
    return page


if __name__ == "__main__":
    main()
