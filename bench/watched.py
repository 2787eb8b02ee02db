"""A process that watches a home as `whyfor serve` does, with one who listens, and says what that
costs it.

    watched.py SECONDS < commands

It says "ready" when all that lies there is read, measures when told "go" for so many seconds,
and prints one JSON line.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import threading
import time
from pathlib import Path

from whyfor import config
from whyfor.live.feed import FeedItem
from whyfor.live.hub import Hub, StreamFilter
from whyfor.service.ingest import watch_agents

MARK = "written at "  # then nanoseconds


def main() -> None:
    seconds = float(sys.argv[1])
    settings = config.load()
    hub, stop = Hub(settings), threading.Event()
    heard: list[tuple[int, FeedItem]] = []
    loop = asyncio.new_event_loop()
    listener = threading.Thread(target=loop.run_until_complete, args=(_listen(hub, heard, stop),))
    watcher = threading.Thread(target=watch_agents, args=(settings, hub, stop))
    listener.start()
    watcher.start()
    print("ready", flush=True)
    sys.stdin.readline()
    cpu, begun = time.process_time(), time.monotonic()
    heard.clear()
    time.sleep(seconds)
    used, wall = time.process_time() - cpu, time.monotonic() - begun
    stop.set()
    watcher.join()
    listener.join()
    delays = sorted(filter(None, (_delay(at, item) for at, item in heard)))
    found = {"cpu": used / wall, "rss_mb": _resident(), "delays": delays, "trouble": hub.trouble}
    print(json.dumps(found), flush=True)


async def _listen(hub: Hub, heard: list[tuple[int, FeedItem]], stop: threading.Event) -> None:
    async with hub.running():
        task = asyncio.create_task(_hear(hub, heard))
        while not stop.is_set():
            await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _hear(hub: Hub, heard: list[tuple[int, FeedItem]]) -> None:
    async for item in hub.subscribe(StreamFilter()):
        if isinstance(item, FeedItem):
            heard.append((time.time_ns(), item))


def _delay(at: int, item: FeedItem) -> float | None:
    """Seconds from the write of a line until it was heard."""
    if item.type != "event" or MARK.encode() not in item.data:
        return None
    return (at - int(json.loads(item.data)["text"].removeprefix(MARK))) / 1e9


def _resident() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return pages * resource.getpagesize() / 2**20


if __name__ == "__main__":
    main()
