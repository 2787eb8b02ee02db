"""Ways a secret comes to stand in a transcript: each carrier is a few templates or one small
function."""

from __future__ import annotations

import html
import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from urllib.parse import quote

# most names say nothing of who gave the secret out
_NAMES = (
    """
token, api key, api token, secret, password, auth token, access token, secret key, client secret, db pass, db password,
access key, api secret, passwd, bot token, deploy token, signing key, webhook secret, refresh token, service key
""".replace("\n", " ")
    .strip()
    .split(", ")
)
_SERVICES = "billing mailer search ingest gateway reports worker catalog notify ledger".split()
_USERS = "app admin deploy ci-bot svc_reports maria postgres root".split()
_HOSTS = (
    "db.internal api.acme.test cache-01.prod.local git.acme.test 10.0.4.17 queue.svc.cluster.local"
).split()
_PATHS = (
    "config/settings.py deploy/values.yaml src/client.ts cmd/server/main.go .env.production "
    "infra/main.tf"
).split()


@dataclass(frozen=True)
class Carried:
    """A text, and the pieces in which the secret stands in it: all of them must go, as one if
    need be."""

    text: str
    forms: tuple[str, ...]
    whole: str = ""


class Scene:
    """What a carrier is written with: a secret, a name for it in every spelling, and some
    surroundings."""

    def __init__(self, rng: Random, secret: str, provider: str) -> None:
        self.rng = rng
        self.secret = secret
        words = rng.choice(_NAMES).split()
        if rng.random() < 0.35:
            words = [provider.lower(), *words]
        self.words = " ".join(words)
        self.name = "_".join(words)
        self.upper = self.name.upper()
        self.camel = words[0] + "".join(word.title() for word in words[1:])
        self.kebab = "-".join(words)
        self.header = "-".join(word.title() for word in words)
        self.service = rng.choice(_SERVICES)
        self.user = rng.choice(_USERS)
        self.host = rng.choice(_HOSTS)
        self.path = rng.choice(_PATHS)
        self.number = str(rng.randint(3, 480))

    def fill(self, template: str, secret: str | None = None) -> str:
        """‹field› in a template becomes that field; the templates are full of braces and dollar
        signs."""
        for field in _FIELDS:
            if f"‹{field}›" in template:
                template = template.replace(f"‹{field}›", getattr(self, field))
        return template.replace("‹secret›", self.secret if secret is None else secret)


_FIELDS = "words name upper camel kebab header service user host path number".split()

Carrier = Callable[[Scene], Carried]


def _plain(*templates: str) -> Carrier:
    """The secret as it is, in one of these."""

    def carry(scene: Scene) -> Carried:
        return Carried(scene.fill(scene.rng.choice(templates)), (scene.secret,))

    return carry


def _encoded(encode: Callable[[str], str], *templates: str) -> Carrier:
    """The secret written as the place requires."""

    def carry(scene: Scene) -> Carried:
        form = encode(scene.secret)
        return Carried(scene.fill(scene.rng.choice(templates), form), (form,))

    return carry


def _quoted(text: str) -> str:
    return json.dumps(text)[1:-1]


def _percent(text: str) -> str:
    return quote(text, safe="")


def _escaped_json(levels: int) -> Carrier:
    def carry(scene: Scene) -> Carried:
        text = json.dumps({"service": scene.service, scene.name: scene.secret, "retries": 3})
        form = _quoted(scene.secret)
        for _ in range(levels):
            text = json.dumps({"level": "info", "body": text})
            form = _quoted(form)
        return Carried(text, (form,))

    return carry


def _base64_of(before: str, after: str, template: str) -> Carrier:
    """Base64 of the secret with something around it; what must go is what the secret's own bytes
    determine."""

    def carry(scene: Scene) -> Carried:
        head, tail = scene.fill(before), scene.fill(after)
        coded = b64encode(f"{head}{scene.secret}{tail}".encode()).decode()
        start, end = len(head.encode()), len(head.encode()) + len(scene.secret.encode())
        form = coded[-(-start * 8 // 6) : end * 8 // 6]
        return Carried(scene.fill(template, coded), (form,), coded)

    return carry


def _wrapped(template: str, break_: str) -> Carrier:
    """The secret broken over two lines."""

    def carry(scene: Scene) -> Carried:
        at = len(scene.secret) * 3 // 5
        first, second = scene.secret[:at], scene.secret[at:]
        return Carried(
            scene.fill(template, first + break_ + second), (first, second), first + break_ + second
        )

    return carry


_LINES = """import { createClient } from "./client";

const options = { retries: 3, timeout: 2_000 };
const client = createClient("‹host›", { ‹camel›: "‹secret›" });
export default client;""".split("\n")


def _numbered(mark: str) -> Carrier:
    def carry(scene: Scene) -> Carried:
        first = int(scene.number)
        lines = (f"{first + at:>6}{mark}{line}" for at, line in enumerate(_LINES))
        return Carried(scene.fill("\n".join(lines)), (scene.secret,))

    return carry


_E = "\x1b"

CARRIERS: dict[str, Carrier] = {
    "prose: the name before": _plain(
        "The ‹words› for ‹service› is ‹secret›, please use it from now on.",
        "ok here's the ‹words›: ‹secret›",
        "I set the ‹words› to ‹secret› but the call still returns 401.",
        "Use `‹secret›` as the ‹words› when you call ‹host›.",
        "my ‹words› is ‹secret› and it should work",
    ),
    "prose: the name after": _plain(
        "Try ‹secret›, that's the ‹words› ‹service› uses.",
        "‹secret› is our ‹words›, don't commit it.",
        'It says "‹secret›" is not a valid ‹words›.',
    ),
    "prose: in backticks": _plain(
        "I found a hard-coded ‹words› in `‹path›`: `‹secret›`. It should be rotated.",
        "- **‹words›**: `‹secret›`\n- **host**: `‹host›`",
    ),
    ".env": _plain(
        "# ‹service›\nPORT=8080\n‹upper›=‹secret›\nLOG_LEVEL=debug",
        'NODE_ENV=production\n‹upper›="‹secret›"\nDEBUG=0',
        "‹upper›='‹secret›'",
    ),
    "export line": _plain(
        "export ‹upper›=‹secret›",
        "export ‹upper›='‹secret›' && make deploy",
        'export ‹upper›="‹secret›"',
    ),
    "fish and PowerShell": _plain(
        'set -gx ‹upper› "‹secret›"', '$env:‹upper› = "‹secret›"', "set ‹upper›=‹secret›"
    ),
    "header: bearer": _plain(
        "Authorization: Bearer ‹secret›",
        'curl -s -H "Authorization: Bearer ‹secret›" https://‹host›/v1/items',
        "headers: { Authorization: `Bearer ‹secret›` }",
        "> authorization: token ‹secret›",
    ),
    "header: X-Api-Key": _plain(
        "X-Api-Key: ‹secret›",
        "curl https://‹host›/v2 -H 'x-api-key: ‹secret›' -H 'accept: application/json'",
        "< x-‹kebab›: ‹secret›\n< content-type: application/json",
    ),
    "header: basic": _base64_of("‹user›:", "", "Authorization: Basic ‹secret›"),
    "cookie": _plain(
        "Cookie: theme=dark; session_token=‹secret›; lang=en",
        "Set-Cookie: auth_token=‹secret›; Path=/; HttpOnly",
    ),
    "JSON": _encoded(
        _quoted,
        '{"host": "‹host›", "‹name›": "‹secret›", "retries": 3}',
        '{\n  "service": "‹service›",\n  "‹camel›": "‹secret›",\n  "debug": false\n}',
        '"‹kebab›":"‹secret›",',
    ),
    "JSON in JSON": _escaped_json(1),
    "JSON in JSON in JSON": _escaped_json(2),
    "YAML": _plain(
        "‹service›:\n  host: ‹host›\n  ‹name›: ‹secret›\n  replicas: 2",
        '‹camel›: "‹secret›"',
        "- name: ‹upper›\n  value: ‹secret›",
    ),
    "TOML": _plain('[‹service›]\nhost = "‹host›"\n‹name› = "‹secret›"', "‹kebab› = '‹secret›'"),
    "INI": _plain("[‹service›]\nhost = ‹host›\n‹name› = ‹secret›", "‹service›.‹name›=‹secret›"),
    "XML": _encoded(
        html.escape,
        "<‹camel›>‹secret›</‹camel›>",
        '<add key="‹header›" value="‹secret›" />',
        "<‹name›>\n    ‹secret›\n</‹name›>",
    ),
    "Python": _plain(
        '‹upper› = "‹secret›"',
        "client = Client(host='‹host›', ‹name›='‹secret›')",
        'os.environ["‹upper›"] = "‹secret›"',
        '    "‹name›": "‹secret›",',
    ),
    "JavaScript": _plain(
        'const ‹camel› = "‹secret›";',
        "new Client({ ‹camel›: '‹secret›', retries: 2 })",
        "process.env.‹upper› = `‹secret›`;",
    ),
    "Go": _plain(
        '‹camel› := "‹secret›"',
        'const ‹camel› string = "‹secret›"',
        'cfg := Config{Host: "‹host›", ‹camel›: "‹secret›"}',
    ),
    "Java and Rust": _plain(
        'private static final String ‹upper› = "‹secret›";',
        'let ‹name› = String::from("‹secret›");',
        'System.setProperty("‹upper›", "‹secret›");',
    ),
    "Ruby and PHP": _plain(
        "  :‹name› => '‹secret›',", "$‹name› = '‹secret›';", "define('‹upper›', '‹secret›');"
    ),
    "flag": _plain(
        "‹service› deploy --‹kebab› ‹secret› --region eu",
        "./run.sh --host ‹host› --‹kebab› '‹secret›'",
    ),
    "flag with =": _plain(
        "‹service› login --‹kebab›=‹secret›",
        "docker run -e ‹upper›=‹secret› ‹service›:latest",
        '--‹kebab›="‹secret›"',
    ),
    "diff": _plain(
        "--- a/‹path›\n+++ b/‹path›\n@@ -3,2 +3,2 @@\n-‹upper›=changeme\n+‹upper›=‹secret›",
        '@@ -11,3 +11,2 @@\n   host: ‹host›\n-  ‹name›: "‹secret›"\n   port: 5432',
        "@@ -1,4 +1,5 @@\n PORT=80\n ‹upper›=‹secret›\n+DEBUG=1",
    ),
    "grep": _plain(
        "‹path›:‹number›:‹upper›=‹secret›",
        '‹path›:‹number›:    ‹name› = "‹secret›"',
        "‹path›-‹number›-  ‹camel›: '‹secret›',",
        '‹number›:  "‹name›": "‹secret›"',
    ),
    "numbered lines: arrow": _numbered("→"),
    "numbered lines: cat -n": _numbered("\t"),
    "numbered lines: bar": _numbered(" | "),
    "URL query": _encoded(
        _percent,
        "GET https://‹host›/v1/items?limit=20&‹name›=‹secret› 200",
        'fetch("https://‹host›/hook?‹camel›=‹secret›&page=2")',
        "https://‹host›/cb?state=ok&access_token=‹secret›#top",
    ),
    "connection string": _encoded(
        _percent,
        "DATABASE_URL=postgres://‹user›:‹secret›@‹host›:5432/‹service›",
        "redis://:‹secret›@‹host›:6379/0",
        'mongoose.connect("mongodb+srv://‹user›:‹secret›@‹host›/‹service›?retryWrites=true")',
        "amqps://‹user›:‹secret›@‹host›/vhost",
    ),
    "connection string: pairs": _plain(
        "Server=‹host›;Database=‹service›;User Id=‹user›;Password=‹secret›;Encrypt=true;",
        "host=‹host› user=‹user› password=‹secret› dbname=‹service›",
        "DefaultEndpointsProtocol=https;AccountName=‹service›;AccountKey=‹secret›;EndpointSuffix=core.test",
    ),
    "URL userinfo": _encoded(
        _percent,
        "https://‹user›:‹secret›@‹host›/team/‹service›.git",
        "git clone https://oauth2:‹secret›@‹host›/‹service›.git",
        "pip download --find-links https://‹user›:‹secret›@‹host›/simple ‹service›",
        "https://‹secret›@‹host›/team/‹service›.git",
    ),
    "git remote -v": _encoded(
        _percent,
        "origin\thttps://‹user›:‹secret›@‹host›/team/‹service›.git "
        "(fetch)\nfork\tgit@‹host›:‹service›.git (push)",
    ),
    "ANSI around": _plain(
        f"{_E}[32m‹upper›=‹secret›{_E}[0m",
        f"{_E}[1m‹name›{_E}[0m: {_E}[33m‹secret›{_E}[39m",
        f'{_E}[38;5;81m"‹secret›"{_E}[0m ← ‹words›',
    ),
    "ANSI between name and value": _plain(
        f"{_E}[36m‹upper›{_E}[0m={_E}[33m‹secret›{_E}[0m",
        f"{_E}[1;34m‹camel›{_E}[0m{_E}[90m:{_E}[0m {_E}[32m'‹secret›'{_E}[0m",
        f"Authorization: {_E}[2mBearer {_E}[22m{_E}[35m‹secret›{_E}[0m",
    ),
    "base64 of the assignment": _base64_of(
        "PORT=8080\n‹upper›=", "\nDEBUG=0\n", "echo ‹secret› | base64 -d > .env"
    ),
    "base64 of JSON": _base64_of('{"‹name›":"', '"}', "payload: ‹secret›"),
    "Kubernetes Secret": _base64_of(
        "",
        "",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: ‹service›\ntype: Opaque\ndata:\n  "
        "‹kebab›: ‹secret›",
    ),
    "Kubernetes stringData": _plain("kind: Secret\nstringData:\n  ‹kebab›: ‹secret›"),
    "Dockerfile": _plain(
        'FROM python:3.12\nENV ‹upper›=‹secret›\nCMD ["serve"]',
        "ARG ‹upper›=‹secret›",
        'ENV ‹upper› "‹secret›"',
    ),
    "docker-compose": _plain(
        "services:\n  ‹service›:\n    environment:\n      - ‹upper›=‹secret›\n      - PORT=80",
        "    environment:\n      ‹upper›: ‹secret›",
    ),
    "GitHub Actions log": _plain(
        "2026-03-04T10:11:12.1234567Z ‹upper›: ‹secret›",
        "2026-03-04T10:11:12.1234567Z   ‹upper›: ‹secret›\n2026-03-04T10:11:12.1234571Z "
        "##[endgroup]",
        "##[debug]‹name›='‹secret›'",
    ),
    "env dump": _plain(
        "SHELL=/bin/bash\nLANG=C.UTF-8\n‹upper›=‹secret›\nHOME=/home/dev\nSHLVL=1",
        'declare -x ‹upper›="‹secret›"',
    ),
    "kubectl describe": _plain(
        "    Environment:\n      PORT:     8080\n      ‹upper›:  ‹secret›\n    Mounts:   <none>",
    ),
    "Markdown table": _plain(
        "| key | value |\n|---|---|\n| ‹upper› | ‹secret› |",
        "| `‹name›` | `‹secret›` | used by ‹service› |",
    ),
    "HTML": _encoded(
        html.escape,
        '<input type="hidden" name="‹name›" value="‹secret›">',
        "&quot;‹name›&quot;: &quot;‹secret›&quot;",
        "&lt;‹camel›&gt;‹secret›&lt;/‹camel›&gt;",
        "<td>‹words›</td><td><code>‹secret›</code></td>",
    ),
    "shell history": _plain(
        "dev@box:~/‹service›$ ‹upper›=‹secret› make test",
        "❯ curl -u ‹user›:‹secret› https://‹host›/api",
        " 1042  mysql -h ‹host› -u ‹user› -p‹secret› ‹service›",
        "$ sshpass -p ‹secret› ssh ‹user›@‹host›",
    ),
    "Terraform": _plain(
        '  ‹name› = "‹secret›"',
        'variable "‹name›" {\n  type    = string\n  default = "‹secret›"\n}',
    ),
    ".netrc": _plain(
        "machine ‹host› login ‹user› password ‹secret›",
        "machine ‹host›\n  login ‹user›\n  password ‹secret›",
    ),
    ".npmrc": _plain(
        "//‹host›/:_authToken=‹secret›", "always-auth=true\n//‹host›/npm/:_password=‹secret›"
    ),
    ".pypirc": _plain("[pypi]\nusername = __token__\npassword = ‹secret›"),
    "SQL": _plain(
        "ALTER USER ‹user› WITH PASSWORD '‹secret›';",
        "CREATE USER ‹user› IDENTIFIED BY '‹secret›';",
        "INSERT INTO settings (name, value) VALUES ('‹name›', '‹secret›');",
        "UPDATE accounts SET ‹name› = '‹secret›' WHERE id = ‹number›;",
    ),
    "CSV": _plain("id,user,‹name›\n‹number›,‹user›,‹secret›", "‹upper›,‹secret›,‹service›"),
    "JSON log line": _encoded(
        _quoted,
        '{"ts":"2026-03-04T10:11:12Z","level":"debug","msg":"request","headers":{"‹kebab›":"‹secret›"},"ms":12}',
        '{"level":"error","msg":"auth failed with ‹words› ‹secret›","service":"‹service›"}',
    ),
    "logfmt line": _plain(
        'level=info ts=2026-03-04T10:11:12Z ‹name›=‹secret› msg="retry"',
        'time="10:11:12" msg="login" ‹camel›="‹secret›"',
    ),
    "stack trace": _plain(
        'Traceback (most recent call last):\n  File "‹path›", line ‹number›, in call\nAuthError: '
        "bad ‹words›: ‹secret›",
        "Error: invalid ‹words› '‹secret›'\n    at connect (‹path›:‹number›:11)",
        "    ‹name› = '‹secret›'\n    self = <Client host='‹host›'>",
    ),
    "Jupyter": _encoded(
        lambda secret: _quoted(_quoted(secret)) if '"' in secret else _quoted(secret),
        '{"cell_type": "code", "source": ["import os\\n", "os.environ[\'‹upper›\'] = '
        '\'‹secret›\'\\n"], "outputs": []}',
        '   "source": [\n    "‹name› = \\"‹secret›\\"\\n"\n   ]',
    ),
    "commented out": _plain(
        "# ‹name› = '‹secret›'  # old",
        '// const ‹camel› = "‹secret›";',
        "/* ‹upper›: ‹secret› */",
        "-- ‹name›: ‹secret›",
    ),
    "function call": _plain(
        'set_‹name›("‹secret›")',
        "client.login('‹user›', password='‹secret›')",
        'assert get("‹name›") == "‹secret›"',
        '.header("‹header›", "‹secret›")',
    ),
    "typed in the prompt": _plain(
        "‹words›:\n‹secret›",
        "password: ‹secret›\nuser: ‹user›",
        "‹user› / ‹secret› are the login and the ‹words›",
    ),
    "name on the line before": _plain(
        '"‹camel›":\n    "‹secret›",', "‹name›: >-\n  ‹secret›", "‹upper› = (\n    '‹secret›'\n)"
    ),
    "wrapped": _wrapped("‹upper›=‹secret›", "\\\n"),
    "wrapped strings": _wrapped('‹name› = (\n    "‹secret›"\n)', '"\n    "'),
}
