"""A shop's repository in which everything happened that a timeline and a commit's page can tell."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from tests.story.links.workshop import Agent, Clock, Repo, body
from whyfor import config
from whyfor.config import Settings
from whyfor.service.ingest import ingest

DAY = 86_400
CHARGE = '''from shop.gateway import GatewayTimeout, gateway
from shop.money import Money


def charge(order, amount: Money):
    """Charge the order's card once."""
    for attempt in range(3):
        try:
            return gateway.post("/charges", body(order, amount))
        except GatewayTimeout:
            time.sleep(2 ** attempt)
    raise ChargeFailed(order.id)
'''
KEYS = '''"""One key per order attempt, so a retry is never a second purchase."""

from datetime import timedelta

VALID_FOR = timedelta(hours=24)


def idempotency_key(order) -> str:
    """Same order and attempt, same key; a new attempt, a new key."""
    return f"{order.id}:{order.attempt}"
'''


class Shop(msgspec.Struct, frozen=True):
    settings: Settings
    repo: Repo
    commits: dict[str, str]  # by what they are
    sessions: dict[str, Agent]


def build(folder: Path) -> Shop:  # noqa: PLR0915 - one story, told from its beginning to its end
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    clock = Clock(time.time() - 3 * DAY)
    repo = Repo.made(home / "code" / "shop", clock)
    repo.git("remote", "add", "origin", "git@example.com:acme/checkout.git")
    commits = {"first": repo.head}
    sessions = {}
    commits["charge"] = repo.commit("Charge cards", {"shop/charge.py": CHARGE})

    clock.tick(DAY)
    sessions["keys"] = keys = Agent("keys", repo)
    keys.prompt(
        "Charges sometimes run twice when the gateway times out. Tell me why before changing "
        "anything."
    )
    keys.say(
        "The retry loop sends a new request each time, so a charge that succeeded is made again."
    )
    keys.prompt(
        "Good. One idempotency key per order attempt. Keep the public signature of charge()."
    )
    keys.edit(
        "shop/charge.py",
        "from shop.money",
        "from shop.keys import idempotency_key\nfrom shop.money",
    )
    keys.edit(
        "shop/charge.py",
        "    for attempt in range(3)",
        "    key = idempotency_key(order)\n    for attempt in range(3)",
    )
    keys.edit("shop/charge.py", "raise ChargeFailed(order.id)", "raise ChargeFailed(order.id, key)")
    keys.ask("How long should a key stay valid?", "24 hours")
    keys.write("shop/keys.py", KEYS)
    clock.tick(100)
    by_hand = "# Gateway support: more than 4 tries locks the card.\nMAX_ATTEMPTS = 4\n"
    repo.write(
        "shop/charge.py",
        repo.read("shop/charge.py").replace("\n\ndef charge", f"\n{by_hand}\n\ndef charge"),
    )
    commits["keys"] = keys.commit("Charge once when the gateway times out")
    clock.tick(60)
    keys.write("CHANGELOG.md", "# Changes\n\nA charge that times out is made once.\n")
    commits["changelog"] = keys.commit("Note the change in the changelog")
    keys.say("Every attempt now carries **one key**, valid for 24 hours.")

    clock.tick(3600)
    sessions["rules"] = rules = Agent("rules", repo)
    sessions["views"] = views = Agent("views", repo)
    rules.prompt("The refund view knows too much. Give the rules their own module.")
    rules.write("shop/rules.py", body("rule", 12))
    views.prompt("Show the reason of a refund next to its amount.")
    views.write("shop/views.py", body("view", 10))
    rules.run("make format || true", check=False)
    repo.write(
        "shop/rules.py",
        repo.read("shop/rules.py") + "formatted_by_somebody = compute('line length')\n",
    )
    commits["both"] = repo.commit("Move refund rules out of the view")

    clock.tick(DAY // 2)
    repo.git("checkout", "-q", "-b", "refund-flow")
    commits["side"] = repo.commit("Pin the gateway client", {"pins.txt": "gateway==2.1\n"})
    repo.git("checkout", "-q", "main")
    commits["typo"] = repo.commit("Fix a typo", {"README.md": "A shop, open.\n"})
    repo.git("merge", "-q", "--no-ff", "-m", "Merge branch 'refund-flow'", "refund-flow")
    commits["merge"] = repo.head

    clock.tick(3600)
    sessions["amended"] = amended = Agent("amended", repo)
    amended.prompt("Log every charge that failed.")
    amended.write("shop/log.py", body("log", 8))
    commits["before"] = amended.commit("Log failed charges")
    repo.git("commit", "-q", "--amend", "-m", "Log every failed charge")
    commits["amended"] = repo.head
    clock.tick(60)
    amended.write("shop/views.py", repo.read("shop/views.py") + body("later", 3))
    repo.git("checkout", "-q", "shop/views.py")
    clock.tick(120)
    commits["near"] = repo.commit(
        "Sort the views by name",
        {"shop/views.py": "sorted_by_hand = True\n" + repo.read("shop/views.py")},
    )

    clock.tick(600)
    sessions["big"] = big = Agent("big", repo)
    big.prompt("Write down all postcodes.")
    big.write("data/postcodes.py", body("postcode", 3000))
    big.write("data/towns.py", body("town", 3))
    commits["big"] = big.commit("Add all postcodes")

    clock.tick(300)
    sessions["open"] = working = Agent("open", repo)
    working.prompt("Now the webhooks.")
    working.write("shop/webhooks.py", body("webhook", 5))

    for session in sessions.values():
        session.save(home)
    settings = settings_of(folder)
    ingest(settings)
    return Shop(settings, repo, commits, sessions)


def settings_of(folder: Path) -> Settings:
    home = folder / "home"
    return config.load(
        {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "WHYFOR_HOME": str(folder / "whyfor"),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_DATA_HOME": str(home / ".local" / "share"),
        }
    )
