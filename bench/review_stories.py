"""Work in which something was decided, changes that take it back, and changes that do not.

`FIRST` and `SECOND` were looked at while the review was written; `HELD_OUT` was written afterwards
and never looked at: its figures are the ones that count.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Step = tuple[str, ...]
Swap = tuple[str, str]


@dataclass(frozen=True)
class Story:
    """A file, the turns that changed it, and changes to the result."""

    name: str
    path: str
    before: str
    steps: list[Step]  # asked, edit, answer, failed, closed, commit
    reversals: dict[str, list[Swap]]
    others: dict[str, list[Swap]] = field(default_factory=dict)


_CHARGE = '''import time

from shop.gateway import GatewayTimeout, gateway


def charge(order, amount):
    """Charge the order's card."""
    for attempt in range(10):
        try:
            return gateway.post("/charges", order.body(amount))
        except GatewayTimeout:
            time.sleep(1)
    raise ChargeFailed(order.id)


def refund(order, amount):
    """Give money back."""
    return gateway.post("/refunds", order.body(amount))
'''

_MONEY = '''from decimal import Decimal


def total(rows):
    """Sum up the rows of an invoice."""
    result = 0.0
    for row in rows:
        result += float(row["price"]) * row["count"]
    return result


def label(amount, currency):
    """Return an amount as people read it."""
    return f"{amount} {currency}"
'''

_CACHE = '''class PriceCache:
    """Prices by product, read once."""

    def __init__(self, reader):
        self.reader = reader
        self.known = {}

    def price(self, product):
        """Return the price of a product."""
        if product not in self.known:
            self.known[product] = self.reader.read(product)
        return self.known[product]

    def clear(self):
        """Forget all prices."""
        self.known.clear()
'''

_UPLOAD = '''import os


def save_upload(name, data, folder):
    """Write an uploaded file."""
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(data)
    return path


def list_uploads(folder):
    """Return the names of all uploads."""
    return sorted(os.listdir(folder))
'''

_MAIL = '''def send_invoice(mailer, customer, invoice):
    """Send an invoice by mail."""
    body = render(invoice)
    mailer.send(customer.address, "Your invoice", body)


def render(invoice):
    """Return the text of an invoice."""
    lines = [f"{row.title}: {row.price}" for row in invoice.rows]
    return "\\n".join(lines)
'''

_QUERY = '''def find_orders(database, customer, status=None):
    """Return the orders of a customer."""
    sql = f"SELECT * FROM orders WHERE customer = '{customer}'"
    if status:
        sql += f" AND status = '{status}'"
    return database.run(sql)


def count_orders(database, customer):
    """Return how many orders a customer has."""
    return len(find_orders(database, customer))
'''

_LOGIN = '''import hashlib


def check_password(user, password):
    """Return whether a password is the user's."""
    digest = hashlib.md5(password.encode()).hexdigest()
    return digest == user.digest


def greet(user):
    """Return the words after a sign-in."""
    return f"Welcome, {user.name}"
'''

FIRST = [
    Story(
        "fewer tries",
        "shop/charge.py",
        _CHARGE,
        [
            ("asked", "Charging retries far too often. Make it robust."),
            ("edit", "range(10)", "range(6)"),
            ("closed", "It tries six times now."),
            ("asked", "No, six is too many. The gateway locks a card after four tries."),
            ("edit", "range(6)", "range(4)"),
            ("closed", "Four tries at most."),
            ("commit", "Try four times"),
        ],
        {
            "more tries again": [("range(4)", "range(8)")],
            "the loop goes": [
                ("    for attempt in range(4):\n        try:\n            return", "    return"),
                ("        except GatewayTimeout:\n            time.sleep(1)\n", ""),
            ],
        },
        {
            "renamed": [("for attempt in range(4)", "for attempt_number in range(4)")],
            "docstring": [("Charge the order's card.", "Charge the card of an order once.")],
            "another function": [('"/refunds"', '"/v2/refunds"')],
            "new function": [
                ("def refund(", "def void(order):\n    return gateway.drop(order)\n\n\ndef refund(")
            ],
        },
    ),
    Story(
        "decimal money",
        "shop/money.py",
        _MONEY,
        [
            ("asked", "Invoices are off by a cent. Never use float for money."),
            (
                "edit",
                '    result = 0.0\n    for row in rows:\n        result += float(row["price"])',
                '    result = Decimal(0)\n    for row in rows:\n        result += Decimal(row["price"])',
            ),
            ("closed", "Sums are Decimal now."),
            ("commit", "Sum up with Decimal"),
        ],
        {
            "float again": [
                ("result = Decimal(0)", "result = 0.0"),
                ('Decimal(row["price"])', 'float(row["price"])'),
            ],
            "float elsewhere": [
                ('return f"{amount} {currency}"', 'return f"{float(amount):.2f} {currency}"')
            ],
        },
        {
            "renamed": [
                ("    result = Decimal(0)", "    total_amount = Decimal(0)"),
                ("        result +=", "        total_amount +="),
                ("    return result", "    return total_amount"),
            ],
            "comprehension": [
                (
                    "    result = Decimal(0)\n    for row in rows:\n        "
                    'result += Decimal(row["price"]) * row["count"]\n    return result',
                    '    return sum(Decimal(row["price"]) * row["count"] for row in rows)',
                )
            ],
            "label": [('f"{amount} {currency}"', 'f"{currency} {amount}"')],
        },
    ),
    Story(
        "cache that ends",
        "shop/cache.py",
        _CACHE,
        [
            ("asked", "Prices stay in the cache forever. Let them expire."),
            ("answer", "How long may a price be kept?", "15 minutes"),
            (
                "edit",
                "        if product not in self.known:\n",
                "        if self.is_old(product, minutes=15):\n",
            ),
            (
                "edit",
                "    def clear(self):",
                "    def is_old(self, product, minutes):\n"
                '        """Return whether a price was read too long ago."""\n'
                "        read_at = self.read_at.get(product)\n"
                "        return read_at is None or now() - read_at > minutes * 60\n\n"
                "    def clear(self):",
            ),
            ("closed", "Prices are read again after 15 minutes."),
            ("commit", "Let prices expire"),
        ],
        {
            "a day": [("minutes=15", "minutes=1440")],
            "forever again": [
                ("if self.is_old(product, minutes=15):", "if product not in self.known:")
            ],
        },
        {
            "renamed method": [
                ("self.is_old(product", "self.is_stale(product"),
                ("def is_old(self", "def is_stale(self"),
            ],
            "clear logs": [
                ("        self.known.clear()", "        self.known.clear()\n        log('empty')")
            ],
            "docstring": [("Prices by product, read once.", "Prices of products.")],
        },
    ),
    Story(
        "safe names",
        "shop/upload.py",
        _UPLOAD,
        [
            ("asked", "Somebody uploaded ../../etc/cron. Refuse names with a slash or dots."),
            (
                "edit",
                "    path = os.path.join(folder, name)\n",
                '    if "/" in name or name.startswith("."):\n'
                '        raise BadName(f"{name} has a slash or begins with a dot")\n'
                "    path = os.path.join(folder, name)\n",
            ),
            ("closed", "Names with a slash or a leading dot are refused."),
            ("commit", "Refuse names that lead elsewhere"),
        ],
        {
            "guard goes": [
                (
                    '    if "/" in name or name.startswith("."):\n'
                    '        raise BadName(f"{name} has a slash or begins with a dot")\n',
                    "",
                )
            ]
        },
        {
            "message": [("has a slash or begins with a dot", "has a slash, or begins with a dot")],
            "new check": [
                ("    path = os.path.join", "    data = scan(data)\n    path = os.path.join")
            ],
            "listing": [("return sorted(os.listdir(folder))", "return sorted(visible(folder))")],
        },
    ),
    Story(
        "an approach that failed",
        "shop/mail.py",
        _MAIL,
        [
            ("asked", "Sending invoices is slow. Make it faster."),
            (
                "edit",
                '    mailer.send(customer.address, "Your invoice", body)\n',
                "    worker = threading.Thread(target=mailer.send, args=(customer.address, body))\n"
                "    worker.daemon = True\n    worker.start()\n",
            ),
            ("failed", "pytest -q tests/test_mail.py"),
            (
                "edit",
                "    worker = threading.Thread(target=mailer.send, args=(customer.address, body))\n"
                "    worker.daemon = True\n    worker.start()\n",
                '    mailer.queue(customer.address, "Your invoice", body)\n',
            ),
            ("closed", "Invoices are queued. A thread lost mails when the process ended."),
            ("commit", "Queue invoices"),
        ],
        {
            "a thread again": [
                (
                    '    mailer.queue(customer.address, "Your invoice", body)\n',
                    "    worker = threading.Thread(target=mailer.send, args=(customer.address, body))\n"
                    "    worker.daemon = True\n    worker.start()\n",
                )
            ]
        },
        {
            "subject": [('"Your invoice"', '"Your invoice from us"')],
            "render": [("{row.title}: {row.price}", "{row.title} {row.price}")],
        },
    ),
    Story(
        "what was taken out comes back",
        "shop/login.py",
        _LOGIN,
        [
            ("asked", "Make passwords safer."),
            (
                "edit",
                "    digest = hashlib.md5(password.encode()).hexdigest()\n",
                "    digest = hashlib.sha1(password.encode()).hexdigest()\n",
            ),
            ("closed", "It uses sha1 now."),
            ("asked", "No, sha1 is broken too. Use scrypt with a salt."),
            (
                "edit",
                "    digest = hashlib.sha1(password.encode()).hexdigest()\n",
                "    digest = hashlib.scrypt(password.encode(), salt=user.salt, n=2**14, r=8, p=1)\n",
            ),
            ("closed", "Passwords are checked with scrypt."),
            ("commit", "Check passwords with scrypt"),
        ],
        {
            "sha1 again": [
                (
                    "    digest = hashlib.scrypt(password.encode(), salt=user.salt, n=2**14, r=8, p=1)",
                    "    digest = hashlib.sha1(password.encode()).hexdigest()",
                )
            ],
            "no salt": [(" salt=user.salt,", "")],
        },
        {
            "compare": [("digest == user.digest", "hmac.compare_digest(digest, user.digest)")],
            "greeting": [("Welcome, {user.name}", "Hello, {user.name}")],
            "wrapped": [
                (
                    "hashlib.scrypt(password.encode(), salt=user.salt, n=2**14, r=8, p=1)",
                    "hashlib.scrypt(\n        password.encode(), salt=user.salt, n=2**14, r=8, p=1\n    )",
                )
            ],
        },
    ),
    Story(
        "no words in queries",
        "shop/query.py",
        _QUERY,
        [
            ("asked", "Queries are built from strings. Use parameters instead."),
            (
                "edit",
                "    sql = f\"SELECT * FROM orders WHERE customer = '{customer}'\"\n"
                "    if status:\n        sql += f\" AND status = '{status}'\"\n"
                "    return database.run(sql)",
                '    sql = "SELECT * FROM orders WHERE customer = ?"\n    parameters = [customer]\n'
                '    if status:\n        sql += " AND status = ?"\n        parameters.append(status)\n'
                "    return database.run(sql, parameters)",
            ),
            ("closed", "Values are parameters now."),
            ("commit", "Use parameters in queries"),
        ],
        {
            "strings again": [
                (
                    '    sql = "SELECT * FROM orders WHERE customer = ?"\n    parameters = [customer]\n',
                    "    sql = f\"SELECT * FROM orders WHERE customer = '{customer}'\"\n",
                ),
                (
                    '        sql += " AND status = ?"\n        parameters.append(status)\n'
                    "    return database.run(sql, parameters)",
                    "        sql += f\" AND status = '{status}'\"\n    return database.run(sql)",
                ),
            ]
        },
        {
            "columns": [('"SELECT * FROM orders', '"SELECT id, status FROM orders')],
            "renamed": [
                ("    parameters = [customer]", "    values = [customer]"),
                ("        parameters.append(status)", "        values.append(status)"),
                ("run(sql, parameters)", "run(sql, values)"),
            ],
            "limit": [
                (
                    "    return database.run(sql, parameters)",
                    '    sql += " LIMIT 100"\n    return database.run(sql, parameters)',
                )
            ],
        },
    ),
]

_EXPORT = '''import csv


def export(rows, file):
    """Write rows as CSV."""
    writer = csv.writer(file)
    for row in rows:
        writer.writerow([row.id, row.name, row.price])


def read_back(file):
    """Return the rows of a CSV file."""
    return list(csv.reader(file))
'''

_PAGE = '''def page(items, number, size=100):
    """Return one page of items."""
    first = (number - 1) * size
    return items[first : first + size]


def pages(items, size=100):
    """Return how many pages there are."""
    return -(-len(items) // size)
'''

_SYNC = '''def sync(local, remote):
    """Bring both sides to the same state."""
    for key, value in local.items():
        remote[key] = value
    for key, value in remote.items():
        local[key] = value


def differences(local, remote):
    """Return the keys whose values differ."""
    return [key for key in local if local[key] != remote.get(key)]
'''

_CLOCK = '''from datetime import datetime


def stamp(event):
    """Return an event with its time."""
    event["at"] = datetime.now().isoformat()
    return event


def is_late(event, limit):
    """Return whether an event came after a limit."""
    return event["at"] > limit
'''

_PARSE = '''def parse(text):
    """Return the settings in a text."""
    found = {}
    for line in text.splitlines():
        name, value = line.split("=")
        found[name] = value
    return found


def dump(settings):
    """Return settings as a text."""
    return "\\n".join(f"{name}={value}" for name, value in settings.items())
'''

_QUEUE = '''class Worker:
    """Takes jobs from a queue."""

    def __init__(self, queue):
        self.queue = queue

    def run(self):
        """Work until nothing is left."""
        while self.queue:
            job = self.queue.pop()
            job.run()

    def stop(self):
        """End after the job that runs now."""
        self.queue.clear()
'''

SECOND = [
    Story(
        "semicolons",
        "shop/export.py",
        _EXPORT,
        [
            ("asked", "Our accountants open the export in Excel and see one column."),
            ("edit", "csv.writer(file)", 'csv.writer(file, dialect="excel")'),
            ("closed", "It uses Excel's dialect."),
            ("asked", "Still one column. German Excel needs a semicolon as delimiter."),
            ("edit", 'csv.writer(file, dialect="excel")', 'csv.writer(file, delimiter=";")'),
            ("closed", "The delimiter is a semicolon."),
            ("commit", "Export with semicolons"),
        ],
        {
            "commas again": [('csv.writer(file, delimiter=";")', "csv.writer(file)")],
            "the dialect again": [('delimiter=";"', 'dialect="excel"')],
        },
        {
            "another column": [("row.name, row.price]", "row.name, row.price, row.tax]")],
            "reader": [("csv.reader(file)", "csv.reader(file, strict=True)")],
            "loop": [
                (
                    "    for row in rows:\n        writer.writerow([row.id, row.name, row.price])",
                    "    writer.writerows([row.id, row.name, row.price] for row in rows)",
                )
            ],
        },
    ),
    Story(
        "page size",
        "shop/page.py",
        _PAGE,
        [
            ("asked", "The list is slow on phones. Show 25 items on a page, not 100."),
            ("edit", "def page(items, number, size=100)", "def page(items, number, size=25)"),
            ("edit", "def pages(items, size=100)", "def pages(items, size=25)"),
            ("closed", "25 items on a page."),
            ("commit", "Show 25 items on a page"),
        ],
        {
            "100 again": [
                ("def page(items, number, size=25)", "def page(items, number, size=100)"),
                ("def pages(items, size=25)", "def pages(items, size=100)"),
            ],
            "one of both": [
                ("def page(items, number, size=25)", "def page(items, number, size=50)")
            ],
        },
        {
            "typed": [
                (
                    "def page(items, number, size=25):",
                    "def page(items: list, number: int, size=25):",
                )
            ],
            "constant": [
                (
                    "def page(items, number, size=25)",
                    "SIZE = 25\n\n\ndef page(items, number, size=SIZE)",
                ),
                ("def pages(items, size=25)", "def pages(items, size=SIZE)"),
            ],
            "docstring": [("Return one page of items.", "Return the items of one page.")],
        },
    ),
    Story(
        "remote wins",
        "shop/sync.py",
        _SYNC,
        [
            ("asked", "Sync overwrites what colleagues changed."),
            ("answer", "Which side should win when both have a value?", "The remote side wins"),
            (
                "edit",
                "    for key, value in local.items():\n        remote[key] = value\n",
                "    for key, value in local.items():\n        remote.setdefault(key, value)\n",
            ),
            ("closed", "The remote side wins."),
            ("commit", "Let the remote side win"),
        ],
        {"local wins": [("remote.setdefault(key, value)", "remote[key] = value")]},
        {
            "sorted": [
                (
                    "in local.items():\n        remote.set",
                    "in sorted(local.items()):\n        remote.set",
                )
            ],
            "differences": [("local[key] != remote.get(key)", "remote.get(key) != local[key]")],
            "logged": [
                (
                    "        remote.setdefault(key, value)",
                    "        remote.setdefault(key, value)\n        log(key)",
                )
            ],
        },
    ),
    Story(
        "times in UTC",
        "shop/clock.py",
        _CLOCK,
        [
            (
                "asked",
                "Events of our two offices are in the wrong order. Always use UTC for times.",
            ),
            ("edit", "from datetime import datetime", "from datetime import UTC, datetime"),
            ("edit", "datetime.now().isoformat()", "datetime.now(UTC).isoformat()"),
            ("closed", "Times are in UTC."),
            ("commit", "Stamp events in UTC"),
        ],
        {
            "local time": [
                ("datetime.now(UTC)", "datetime.now()"),
                ("import UTC, datetime", "import datetime"),
            ],
        },
        {
            "without microseconds": [
                ("datetime.now(UTC).isoformat()", 'datetime.now(UTC).isoformat(timespec="seconds")')
            ],
            "copy": [
                (
                    '    event["at"] = datetime',
                    '    event = dict(event)\n    event["at"] = datetime',
                )
            ],
            "compare": [('event["at"] > limit', 'event["at"] >= limit')],
        },
    ),
    Story(
        "comments and values with signs",
        "shop/parse.py",
        _PARSE,
        [
            (
                "asked",
                "A value with an equals sign breaks the settings. Split at the first one only.",
            ),
            ("edit", 'line.split("=")', 'line.split("=", 1)'),
            ("closed", "Only the first sign splits."),
            ("asked", "Also skip empty lines and comments that begin with #."),
            (
                "edit",
                '        name, value = line.split("=", 1)\n',
                '        if not line.strip() or line.startswith("#"):\n            continue\n'
                '        name, value = line.split("=", 1)\n',
            ),
            ("closed", "Empty lines and comments are skipped."),
            ("commit", "Read settings with comments"),
        ],
        {
            "comments break": [
                (
                    '        if not line.strip() or line.startswith("#"):\n            continue\n',
                    "",
                )
            ],
            "all signs": [('line.split("=", 1)', 'line.split("=")')],
        },
        {
            "stripped": [
                ("        found[name] = value", "        found[name.strip()] = value.strip()")
            ],
            "dump": [('"\\n".join(f"{name}={value}"', '"\\n".join(f"{name} = {value}"')],
            "renamed": [
                ("    found = {}", "    settings = {}"),
                ("        found[name] = value", "        settings[name] = value"),
                ("    return found\n", "    return settings\n"),
            ],
        },
    ),
    Story(
        "oldest first",
        "shop/queue.py",
        _QUEUE,
        [
            ("asked", "Old jobs wait for hours. Take the oldest job first."),
            ("edit", "job = self.queue.pop()", "job = self.queue.pop(0)"),
            ("failed", "pytest tests/test_queue.py"),
            ("edit", "job = self.queue.pop(0)", "job = self.queue.popleft()"),
            ("closed", "Jobs are taken from the left: the oldest first."),
            ("commit", "Take the oldest job first"),
        ],
        {
            "newest first": [("self.queue.popleft()", "self.queue.pop()")],
            "what failed": [("self.queue.popleft()", "self.queue.pop(0)")],
        },
        {
            "guarded": [
                ("            job.run()", "            if not job.done:\n                job.run()")
            ],
            "stop": [("        self.queue.clear()", "        self.stopped = True")],
            "docstring": [("Work until nothing is left.", "Work until the queue is empty.")],
        },
    ),
]

_STOCK = '''def reserve(stock, product, count):
    """Take items from the stock for an order."""
    left = stock[product] - count
    stock[product] = left
    return left


def restock(stock, product, count):
    """Put items back."""
    stock[product] = stock.get(product, 0) + count
'''

_NOTIFY = '''def notify(users, text, sender):
    """Tell users something."""
    for user in users:
        sender.push(user.device, text)


def digest(events):
    """Return events as one text."""
    return ", ".join(event.title for event in events)
'''

_RATE = '''class RateLimit:
    """How often somebody may ask."""

    def __init__(self, store):
        self.store = store

    def allow(self, address):
        """Return whether one more request is allowed."""
        count = self.store.increment(address)
        return count <= 1000

    def reset(self, address):
        """Begin to count again."""
        self.store.delete(address)
'''

_REPORT = '''def report(orders):
    """Return the sales of each month."""
    found = {}
    for order in orders:
        month = order.date[:7]
        found[month] = found.get(month, 0) + order.total
    return found


def best_month(orders):
    """Return the month with the highest sales."""
    sales = report(orders)
    return max(sales, key=sales.get)
'''

_FETCH = '''import urllib.request


def fetch(url):
    """Return the body of a page."""
    return urllib.request.urlopen(url).read()


def title_of(body):
    """Return what stands between the title tags."""
    return body.split(b"<title>")[1].split(b"</title>")[0]
'''

_RENDER = """function renderComment(comment) {
  const box = document.createElement("article");
  box.innerHTML = comment.text;
  return box;
}

function renderList(comments) {
  return comments.map(renderComment);
}
"""

_DEPLOY = """package deploy

func Roll(hosts []string, run func(string) error) error {
	for _, host := range hosts {
		if err := run(host); err != nil {
			return err
		}
	}
	return nil
}

func Names(hosts []string) string {
	return strings.Join(hosts, " ")
}
"""

HELD_OUT = [
    Story(
        "no negative stock",
        "shop/stock.py",
        _STOCK,
        [
            (
                "asked",
                "We sold items that we do not have. Refuse an order that the stock cannot fill.",
            ),
            (
                "edit",
                "    left = stock[product] - count\n",
                "    left = stock[product] - count\n    if left < 0:\n"
                "        raise OutOfStock(product, count)\n",
            ),
            ("closed", "reserve raises OutOfStock now."),
            ("commit", "Refuse orders that the stock cannot fill"),
        ],
        {
            "guard goes": [
                ("    if left < 0:\n        raise OutOfStock(product, count)\n", ""),
            ],
            "only a warning": [
                ("        raise OutOfStock(product, count)", "        log.warning(product)"),
            ],
        },
        {
            "message": [
                ("raise OutOfStock(product, count)", "raise OutOfStock(product, count, left)")
            ],
            "restock": [("stock.get(product, 0) + count", "max(0, stock.get(product, 0)) + count")],
            "renamed": [
                ("    left = stock[product] - count", "    remaining = stock[product] - count"),
                ("    if left < 0:", "    if remaining < 0:"),
                ("    stock[product] = left", "    stock[product] = remaining"),
                ("    return left", "    return remaining"),
            ],
        },
    ),
    Story(
        "quiet at night",
        "shop/notify.py",
        _NOTIFY,
        [
            ("asked", "People complain about messages at night."),
            ("answer", "When should nothing be sent?", "Between 22 and 7 in the user's own time"),
            (
                "edit",
                "        sender.push(user.device, text)\n",
                "        if 7 <= user.local_hour() < 22:\n            sender.push(user.device, text)\n",
            ),
            ("closed", "Nothing is pushed between 22 and 7."),
            ("commit", "Push nothing at night"),
        ],
        {
            "always": [
                (
                    "        if 7 <= user.local_hour() < 22:\n            sender.push(user.device, text)",
                    "        sender.push(user.device, text)",
                )
            ],
            "until midnight": [("user.local_hour() < 22", "user.local_hour() < 24")],
        },
        {
            "badge": [
                ("sender.push(user.device, text)", "sender.push(user.device, text, badge=1)")
            ],
            "digest": [('", ".join', '"; ".join')],
            "active users": [("for user in users:", "for user in active(users):")],
        },
    ),
    Story(
        "fewer requests",
        "shop/rate.py",
        _RATE,
        [
            ("asked", "Somebody scrapes us. Lower the limit."),
            ("edit", "return count <= 1000", "return count <= 500"),
            ("closed", "500 requests."),
            ("asked", "That's not enough. 60 requests per minute at most, as in our terms."),
            (
                "edit",
                "count = self.store.increment(address)",
                "count = self.store.increment(address, seconds=60)",
            ),
            ("edit", "return count <= 500", "return count <= 60"),
            ("closed", "60 requests a minute."),
            ("commit", "Allow 60 requests a minute"),
        ],
        {
            "more": [("return count <= 60", "return count <= 600")],
            "500 again": [("return count <= 60", "return count <= 500")],
        },
        {
            "docstring": [("How often somebody may ask.", "How often one address may ask.")],
            "reset": [("self.store.delete(address)", "self.store.set(address, 0)")],
            "logged": [
                (
                    "        return count <= 60",
                    "        log(address, count)\n        return count <= 60",
                )
            ],
        },
    ),
    Story(
        "cancelled orders do not count",
        "shop/report.py",
        _REPORT,
        [
            ("asked", "The report counts orders that were cancelled. Leave them out."),
            (
                "edit",
                "        month = order.date[:7]\n",
                "        if order.cancelled:\n            continue\n        month = order.date[:7]\n",
            ),
            ("closed", "Cancelled orders are left out."),
            ("commit", "Leave out cancelled orders"),
        ],
        {"counted again": [("        if order.cancelled:\n            continue\n", "")]},
        {
            "by week": [("month = order.date[:7]", "month = order.week()")],
            "sorted": [("    return found\n", "    return dict(sorted(found.items()))\n")],
            "moved": [
                (
                    "    for order in orders:\n        if order.cancelled:\n            continue\n",
                    "    for order in orders:\n        log(order)\n        if order.cancelled:\n            continue\n",
                )
            ],
            "another loop": [
                (
                    "    for order in orders:\n        if order.cancelled:\n            continue\n        month",
                    "    kept = [order for order in orders if not order.cancelled]\n"
                    "    for order in kept:\n        month",
                )
            ],
        },
    ),
    Story(
        "a timeout",
        "shop/fetch.py",
        _FETCH,
        [
            ("asked", "The crawler hangs on dead servers. Give up after ten seconds."),
            ("edit", "urlopen(url).read()", "urlopen(url, timeout=10).read()"),
            ("closed", "It gives up after ten seconds."),
            ("commit", "Give up after ten seconds"),
        ],
        {
            "no timeout": [("urlopen(url, timeout=10)", "urlopen(url)")],
            "a minute": [("timeout=10", "timeout=60")],
        },
        {
            "with": [
                (
                    "    return urllib.request.urlopen(url, timeout=10).read()",
                    "    with urllib.request.urlopen(url, timeout=10) as page:\n        return page.read()",
                )
            ],
            "title": [("[1].split", "[-1].split")],
            "agent": [("urlopen(url, timeout=10)", "urlopen(named(url), timeout=10)")],
        },
    ),
    Story(
        "no HTML from strangers",
        "web/comments.js",
        _RENDER,
        [
            ("asked", "A comment with a script tag ran. Never use innerHTML in this project."),
            ("edit", "box.innerHTML = comment.text;", "box.textContent = comment.text;"),
            ("closed", "Comments are shown as text."),
            ("commit", "Show comments as text"),
        ],
        {
            "HTML again": [("box.textContent = comment.text;", "box.innerHTML = comment.text;")],
            "HTML elsewhere": [
                (
                    "  return comments.map(renderComment);",
                    '  const list = document.createElement("ol");\n'
                    '  list.innerHTML = comments.map(renderComment).join("");\n  return list;',
                )
            ],
        },
        {
            "class": [
                (
                    "  box.textContent = comment.text;",
                    '  box.className = "comment";\n  box.textContent = comment.text;',
                )
            ],
            "trimmed": [("= comment.text;", "= comment.text.trim();")],
            "renamed": [
                ("  const box = document", "  const card = document"),
                ("  box.textContent", "  card.textContent"),
                ("  return box;", "  return card;"),
            ],
        },
    ),
    Story(
        "one host at a time failed",
        "deploy/roll.go",
        _DEPLOY,
        [
            ("asked", "Deploys take an hour. Roll out to several hosts at once."),
            (
                "edit",
                "\t\tif err := run(host); err != nil {\n\t\t\treturn err\n\t\t}\n",
                "\t\tgo func(name string) { results <- run(name) }(host)\n",
            ),
            ("failed", "go test ./deploy"),
            (
                "edit",
                "\t\tgo func(name string) { results <- run(name) }(host)\n",
                "\t\tgroup.Go(func() error { return run(host) })\n",
            ),
            ("edit", "\treturn nil\n", "\treturn group.Wait()\n"),
            ("closed", "Hosts are rolled out in a group that waits and keeps the first error."),
            ("commit", "Roll out to several hosts at once"),
        ],
        {
            "the channel again": [
                (
                    "\t\tgroup.Go(func() error { return run(host) })",
                    "\t\tgo func(name string) { results <- run(name) }(host)",
                )
            ],
            "one at a time": [
                (
                    "\t\tgroup.Go(func() error { return run(host) })\n",
                    "\t\tif err := run(host); err != nil {\n\t\t\treturn err\n\t\t}\n",
                ),
                ("\treturn group.Wait()\n", "\treturn nil\n"),
            ],
        },
        {
            "limit": [("\t\tgroup.Go(", "\t\tgroup.SetLimit(8)\n\t\tgroup.Go(")],
            "names": [('strings.Join(hosts, " ")', 'strings.Join(hosts, ", ")')],
            "sorted": [("range hosts {", "range sorted(hosts) {")],
        },
    ),
]
