"""Harmless lines of the kinds transcripts are full of, many of which look like secrets."""

from __future__ import annotations

import re
from base64 import b64encode
from random import Random

from prose import WORDS

_FIELD = re.compile(r"‹(\w+)(?::(\d+))?›")
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_EXTENSIONS = "py ts go rs rb java tsx css md yaml".split()
_WORDS = [word for word in WORDS if len(word) > 3]


class Ink:
    """Fills templates: ‹hex:40›, ‹uuid›, ‹word› and so on become something new each time."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def fill(self, template: str) -> str:
        def field(match: re.Match[str]) -> str:
            drawn: str = getattr(self, match[1])(*([int(match[2])] if match[2] else []))
            return drawn

        return _FIELD.sub(field, template)

    def _of(self, letters: str, length: int) -> str:
        return "".join(self.rng.choices(letters, k=length))

    def hex(self, length: int = 40) -> str:
        return f"{self.rng.getrandbits(4 * length):0{length}x}"

    def upperhex(self, length: int = 32) -> str:
        return self.hex(length).upper()

    def b64(self, size: int = 32) -> str:
        return b64encode(self.rng.randbytes(size)).decode()

    def b64url(self, length: int = 24) -> str:
        return self._of(_BASE62 + "-_", length)

    def base62(self, length: int = 24) -> str:
        return self._of(_BASE62, length)

    def bech32(self, length: int = 58) -> str:
        return self._of(_BECH32, length)

    def ulid(self) -> str:
        return "01" + self._of(_CROCKFORD, 24)

    def uuid(self) -> str:
        digits = self.hex(32)
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

    def digits(self, length: int = 3) -> str:
        return str(self.rng.randint(10 ** (length - 1), 10**length - 1))

    def scheme(self) -> str:
        return self.rng.choice(["https", "git+ssh"])

    def word(self) -> str:
        return self.rng.choice(_WORDS)

    def words(self, count: int = 6) -> str:
        return " ".join(self.rng.choices(_WORDS, k=count))

    def snake(self, count: int = 3) -> str:
        return "_".join(self.rng.choices(_WORDS, k=count))

    def kebab(self, count: int = 3) -> str:
        return "-".join(self.rng.choices(_WORDS, k=count))

    def camel(self, count: int = 2) -> str:
        first, *rest = self.rng.choices(_WORDS, k=count)
        return first + "".join(map(str.title, rest))

    def upper(self, count: int = 2) -> str:
        return self.snake(count).upper()

    def path(self) -> str:
        return f"src/{self.word()}/{self.snake(2)}.{self.rng.choice(_EXTENSIONS)}"

    def semver(self) -> str:
        return ".".join(str(self.rng.randint(0, 30)) for _ in range(3))

    def date(self) -> str:
        return f"20{self.rng.randint(20, 27)}-{self.rng.randint(1, 12):02}-{self.rng.randint(1, 28):02}"

    def time(self) -> str:
        clock = ":".join(f"{self.rng.randint(0, most):02}" for most in (23, 59, 59))
        return f"{self.date()}T{clock}.{self.digits(3)}Z"

    def ip(self) -> str:
        return ".".join(str(self.rng.randint(1, 254)) for _ in range(4))

    def mac(self) -> str:
        return ":".join(self.hex(2) for _ in range(6))

    def minified(self) -> str:
        """A line of minified JavaScript."""
        parts = (
            f"function {self.base62(1)}(e,t){{return "
            f"e.{self.word()}(t)?{self.digits(2)}:{self.hex(4)!r}}}"
            for _ in range(6)
        )
        return "!" + ";".join(parts) + ";"


# what people write where a secret goes
_PLACEHOLDERS = """
your-api-key YOUR_API_KEY <your-token> changeme test-token xxxxxxxx ******** dummy example placeholder REDACTED
my-secret-value fake-token password foo None null "" undefined TODO sk-... ${TOKEN} $(cat token.txt)
{{ secrets.TOKEN }} <password> not-a-real-key insert-token-here
""".split()

TEMPLATES: dict[str, list[str]] = {
    "go.sum": [
        "github.com/‹word›/‹kebab:2› v‹semver› h1:‹b64:32›",
        "golang.org/x/‹word› v0.0.0-20‹digits:12›-‹hex:12›/go.mod h1:‹b64:32›",
    ],
    "package-lock": [
        '      "integrity": "sha512-‹b64:64›",',
        '      "resolved": "‹scheme›://registry.npmjs.org/‹kebab:2›/-/‹kebab:2›-‹semver›.tgz",',
        '    "node_modules/@‹word›/‹kebab:2›": {',
    ],
    "yarn and pnpm locks": [
        "  integrity sha512-‹b64:64›",
        '  resolved "https://registry.yarnpkg.com/‹kebab:2›/-/‹kebab:2›-‹semver›.tgz#‹hex:40›"',
        "    resolution: {integrity: sha512-‹b64:64›}",
        "  checksum: 10c0/‹hex:128›",
    ],
    "Python, Rust, Ruby, Pod locks": [
        '    {file = "‹snake:2›-‹semver›-py3-none-any.whl", hash = "sha256:‹hex:64›"},',
        "    --hash=sha256:‹hex:64› \\",
        'checksum = "‹hex:64›"',
        "source = { url = "
        '"https://files.pythonhosted.org/packages/‹hex:2›/‹hex:2›/‹hex:60›/‹word›.tar.gz" }',
        "    ‹kebab:2› (‹semver›) sha256=‹hex:64›",
        "  ‹camel:2›: ‹hex:40›",
    ],
    "git log": [
        "commit ‹hex:40›",
        "‹hex:7› ‹words:6›",
        "* ‹hex:9› - (HEAD -> ‹kebab:2›, origin/main) ‹words:5›",
        "‹hex:40› ‹hex:40› Merge pull request #‹digits:3› from ‹word›/‹kebab:3›",
        "‹hex:8› HEAD@{‹digits:1›}: rebase (pick): ‹words:5›",
        "    Change-Id: I‹hex:40›",
        "tree ‹hex:40›",
        "parent ‹hex:40›",
        "100644 blob ‹hex:40›\t‹path›",
        "‹hex:40›\trefs/heads/‹kebab:2›",
        "[‹kebab:2› ‹hex:7›] ‹words:6›",
    ],
    "git diff": [
        "index ‹hex:7›..‹hex:7› 100644",
        "index ‹hex:40›..‹hex:40› 100755",
        "diff --git a/‹path› b/‹path›",
        "Subproject commit ‹hex:40›",
        "oid sha256:‹hex:64›",
        "+    ‹camel:2›(‹word›, ‹word›)",
        "-from ‹word›.‹word› import ‹snake:2›",
    ],
    "uuids and ulids": [
        "‹uuid›",
        '  "id": "‹uuid›",',
        "  request_id: ‹ulid›",
        "Created job ‹uuid› in queue ‹word›",
        '{"parentUuid":"‹uuid›","uuid":"‹uuid›","sessionId":"‹uuid›"}',
        "/api/projects/‹uuid›/items/‹ulid›",
        "session-‹uuid›.jsonl",
    ],
    "tool and message ids": [
        "toolu_01‹base62:22›",
        'tool_use_id: "toolu_01‹base62:22›"',
        '"id":"msg_01‹base62:22›","type":"message"',
        "call_‹base62:24›",
        "requestId req_011‹base62:21›",
        "chatcmpl-‹base62:29›",
        "resp_‹hex:48›",
        '"call_id":"call_‹base62:24›"',
        '<parameter name="task_id">‹hex:8›</parameter>',
        "rollout-‹date›T10-11-12-‹uuid›.jsonl",
        "run_‹ulid›",
    ],
    "trace ids": [
        "traceparent: 00-‹hex:32›-‹hex:16›-01",
        "x-request-id: ‹uuid›",
        "x-amzn-trace-id: Root=1-‹hex:8›-‹hex:24›",
        "trace_id=‹hex:32› span_id=‹hex:16› sampled=true",
        "cf-ray: ‹hex:16›-FRA",
        "x-github-request-id: ‹upperhex:4›:‹upperhex:5›:‹upperhex:7›:‹upperhex:7›:‹upperhex:8›",
        'etag: "‹hex:32›"',
        'ETag: W/"‹b64url:27›"',
        "last-event-id: ‹digits:13›-0",
        "x-fastly-request-id: ‹hex:40›",
    ],
    "docker": [
        "Digest: sha256:‹hex:64›",
        "‹word›/‹kebab:2›@sha256:‹hex:64›",
        "registry.acme.test/‹word›/‹kebab:2›:‹semver›-‹hex:8›",
        "‹hex:12›: Pull complete",
        "#12 [‹word› 3/9] COPY --from=‹word› /app /app",
        "#14 exporting manifest sha256:‹hex:64› done",
        " ---> ‹hex:12›",
        "Successfully built ‹hex:12›",
        '‹hex:12›   ‹kebab:2›:latest   "/entrypoint.sh ‹word›"   ‹digits:2› minutes ago   Up '
        "‹digits:2› minutes",
    ],
    "tests": [
        "tests/test_‹snake:1›.py::test_‹snake:4› PASSED",
        "    ✓ ‹words:7› (‹digits:2› ms)",
        "--- PASS: Test‹camel:3› (0.0‹digits:1›s)",
        "FAILED tests/test_tokens.py::test_an_expired_token_is_refused - AssertionError",
        "test auth::tests::rejects_bad_password ... ok",
        "def test_‹snake:3›_password_is_hashed(client: Client) -> None:",
        'it("returns 401 when the token is ‹word›", async () => {',
    ],
    "asset paths": [
        "dist/assets/‹word›-‹hex:8›.js   ‹digits:3›.‹digits:2› kB │ gzip: ‹digits:2›.‹digits:2› kB",
        "/static/css/main.‹hex:20›.chunk.css",
        "node_modules/.pnpm/‹kebab:2›@‹semver›_‹hex:32›/node_modules/‹kebab:2›",
        "/nix/store/‹base62:32›-‹kebab:2›-‹semver›/bin/‹word›",
        "~/.cache/pip/http-v2/‹hex:1›/‹hex:1›/‹hex:1›/‹hex:1›/‹hex:1›/‹hex:56›",
        ".git/objects/‹hex:2›/‹hex:38›",
        "/var/folders/‹hex:2›/‹base62:30›/T/tmp‹base62:8›",
        "target/debug/deps/‹snake:2›-‹hex:16›.rlib",
        "_next/static/‹b64url:21›/_buildManifest.js",
        "__pycache__/‹snake:2›.cpython-311.pyc",
        "/home/dev/.claude/projects/-home-dev-‹kebab:3›/‹uuid›.jsonl",
    ],
    "URLs with ids": [
        "https://github.com/‹word›/‹kebab:2›/commit/‹hex:40›",
        "https://‹word›.test/d/‹b64url:9›/‹kebab:3›?orgId=1&from=‹digits:13›&to=‹digits:13›",
        "https://docs.acme.test/document/d/‹b64url:44›/edit#heading=h.‹base62:12›",
        "https://www.figma.test/file/‹base62:22›/‹kebab:2›?node-id=‹digits:3›%3A‹digits:4›",
        "https://raw.acme.test/‹word›/‹word›/‹hex:40›/‹path›",
        "https://‹word›.test/watch?v=‹b64url:11›&list=PL‹b64url:32›",
        "http://localhost:‹digits:4›/api/‹word›?page=‹digits:1›&cursor=‹b64:24›",
        "https://acme.test/reset-password?next=/settings/tokens",
        "git@github.test:‹word›/‹kebab:2›.git",
        "postgres://localhost:5432/‹word›",
        "postgresql://user:password@localhost:5432/‹word›",
        "redis://redis:6379/0",
    ],
    "embedded data": [
        "data:image/png;base64,‹b64:240›",
        "src: url(data:font/woff2;base64,‹b64:300›) format('woff2');",
        '{"type":"image","source":{"type":"base64","media_type":"image/png","data":"‹b64:300›"}}',
        '"signature":"‹b64:200›"',
        '{"version":3,"sources":["‹path›"],"mappings":"AAAA,SAAS,‹base62:12›,GAAG,‹base62:9›;EACE,‹base62:14›"}',
        "//# sourceMappingURL=data:application/json;base64,‹b64:180›",
        '<link rel="stylesheet" href="/main.css" integrity="sha384-‹b64:48›" '
        'crossorigin="anonymous">',
        "iVBORw0KGgo‹b64:60›",
    ],
    "minified": ["‹minified›"],
    "public keys": [
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC‹b64:270› dev@‹word›",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI‹b64:32› ‹word›@‹word›",
        "age1‹bech32:58›",
        "SHA256:‹base62:43› dev@‹word› (ED25519)",
        "-----BEGIN CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----",
        "MII‹b64:45›",
        "github.com ecdsa-sha2-nistp256 "
        "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBB‹b64:60›",
        "Fingerprint: ‹upperhex:40›",
        "gpg:                using RSA key ‹upperhex:40›",
        "serial=‹upperhex:32›",
    ],
    "code about secrets": [
        'api_key = os.environ["‹upper:2›_API_KEY"]',
        'token = os.getenv("GITHUB_TOKEN", "")',
        "const apiKey = process.env.‹upper:1›_API_KEY;",
        "const { accessToken, refreshToken } = await login(username, password);",
        "def authenticate(user: str, password: str, token: str | None = None) -> bool:",
        "    password: SecretStr",
        "  accessToken: string;",
        "    self.token = token",
        'headers = {"Authorization": f"Bearer {self.token}"}',
        "headers: { Authorization: `Bearer ${token}` },",
        'req.Header.Set("Authorization", "Bearer "+cfg.Token)',
        "if not secrets.compare_digest(token, expected_token):",
        "password = getpass.getpass()",
        "client_secret=settings.‹snake:2›.client_secret,",
        'token := r.Header.Get("X-Auth-Token")',
        "    token: ${{ secrets.‹upper:2› }}",
        "  password: {{ .Values.‹camel:2›.password | quote }}",
        "    secretKeyRef:",
        "      secretName: ‹kebab:3›-tls",
        'SECRET_KEY = config("SECRET_KEY")',
        "export TOKEN=$(vault kv get -field=token secret/‹word›)",
        'export API_KEY="$(pass show ‹word›/api-key)"',
        "password_hash = bcrypt.hashpw(password.encode(), bcrypt.gensalt())",
        "token_type: Literal['access', 'refresh'] = 'access'",
        "tokens = tokenizer.encode(text, add_special_tokens=False)",
        "max_tokens=‹digits:4›,",
        "pad_token_id = ‹digits:5›",
        "for token in lexer.tokens():",
        'secret_name = f"{release}-‹kebab:2›"',
        "key = lambda item: item.‹word›",
        "primary_key = True",
        '<input type="password" name="password" autocomplete="current-password" />',
        "auth_token_ttl: 3600",
        "password_min_length = 12",
        'API_KEY_HEADER = "X-API-Key"',
        'TOKEN_URL = "https://auth.acme.test/oauth/token"',
        'private_key_path = "/etc/ssl/private/‹kebab:2›.key"',
        'access_key_id: Optional[str] = Field(default=None, description="‹words:5›")',
        'throw new Error("Missing API key: set ‹upper:2›_API_KEY");',
        'grep -rn "password\\|secret\\|token" src/',
        "kubectl get secret ‹kebab:2› -o jsonpath='{.data.password}' | base64 -d",
        'curl -H "Authorization: Bearer $TOKEN" https://‹word›.test/v1/‹word›',
        'mysql -u root -p"$MYSQL_PASSWORD" ‹word›',
        'docker login -u "$REGISTRY_USER" --password-stdin',
        "gh auth token | docker login ghcr.test -u ‹word› --password-stdin",
        "token = request.cookies.get('session_token')",
        'tokenizer = AutoTokenizer.from_pretrained("‹word›/‹kebab:2›")',
        "this.csrfToken = document.querySelector('meta[name=\"csrf-token\"]').content;",
        "passwordField.sendKeys(user.getPassword());",
        "secret: string | undefined = undefined,",
        "const TOKEN_REGEX = /^[A-Za-z0-9_-]{20,}$/;",
        'pattern = r"(?i)api[_-]?key\\s*[:=]\\s*[\'\\"]?([a-z0-9]{32,})"',
    ],
    "secrets in words": [
        "The token is refreshed when it expires; see ‹path›.",
        "Never log the password, and rotate the API key every 90 days.",
        "I'll add a `token` parameter to `‹camel:2›` and pass the secret through the context.",
        "The secret is stored in the keychain, not in the file.",
        "- [ ] move the API key to the vault",
        "You need to set `‹upper:2›_TOKEN` before running the tests.",
        "Error: invalid token at position ‹digits:3›",
        "SyntaxError: Unexpected token '}' in JSON at position ‹digits:4›",
        '401 Unauthorized: password authentication failed for user "‹word›"',
        "fatal: could not read Password for 'https://‹word›@github.test': terminal prompts "
        "disabled",
        "password: ",
        "Enter passphrase for key '/home/dev/.ssh/id_ed25519':",
        "The secret sauce is ‹words:5›.",
        "token-based authentication, key-value ‹word›, password-less login",
        "chore(auth): rename secretKey to signingKey in ‹path›",
    ],
    "placeholders": [
        "‹upper:1›_API_KEY=‹placeholder›",
        '"password": "‹placeholder›",',
        "--token ‹placeholder›",
        "api_key: ‹placeholder›",
    ],
    "usage": [
        '"usage":{"input_tokens":‹digits:1›,"cache_creation_input_tokens":‹digits:4›,"cache_read_input_tokens":‹digits:5›,"output_tokens":‹digits:3›}',
        '{"type":"token_count","info":{"total_token_usage":{"input_tokens":‹digits:6›,"total_tokens":‹digits:6›}}}',
        "Total tokens: ‹digits:5› | cost: $0.‹digits:4›",
        "context: ‹digits:5› tokens (‹digits:2›% of ‹digits:6›)",
        "tokens used ‹digits:5›",
    ],
    "styles": [
        "  --color-‹word›: #‹hex:6›;",
        ".‹kebab:3›__‹word›--‹word› { background: #‹hex:6›‹hex:2›; margin: 0 ‹digits:2›px; }",
        '<path d="M‹digits:2›.‹digits:3› '
        '‹digits:2›c-.‹digits:3›-.‹digits:2›-‹digits:1›.‹digits:2›z" fill="#‹hex:6›"/>',
        'className="flex items-center gap-‹digits:1› text-[#‹hex:6›] '
        'hover:bg-gray-‹digits:1›00/50"',
        "._‹base62:5›_‹base62:5›_‹digits:1› { display: flex }",
    ],
    "locales": [
        '  "auth.password.label": "Password",',
        '  "auth.token.expired": "Your token has expired. Sign in again.",',
        '  "password_placeholder": "Enter your password",',
        'msgid "The secret key is missing"',
        "password: Contraseña",
        "api_key: Clé d’API",
    ],
    "SQL": [
        "ALTER TABLE users ADD COLUMN password_hash VARCHAR(255) NOT NULL;",
        "CREATE UNIQUE INDEX idx_‹snake:2›_token ON sessions (token);",
        "SELECT id, email, token_expires_at FROM api_keys WHERE revoked_at IS NULL;",
        "INSERT INTO migrations VALUES ('‹digits:14›_‹snake:3›', ‹digits:2›);",
        "  key_id UUID PRIMARY KEY DEFAULT gen_random_uuid(),",
        "UPDATE ‹word› SET ‹snake:2› = ‹digits:4› WHERE id = '‹uuid›';",
        "down_revision = '‹hex:12›'",
        "revision: str = '‹hex:12›'",
    ],
    "numbers": [
        "‹time› INFO ‹word›.‹word› ‹words:5›",
        "v‹semver›",
        "+49 30 ‹digits:8›",
        "(555) ‹digits:3›-‹digits:4›",
        "ether ‹mac›  txqueuelen 1000",
        "inet ‹ip›/24 brd ‹ip›",
        "2001:db8:‹hex:4›:‹hex:4›:‹hex:4›:‹hex:4›:‹hex:4›:‹hex:4›",
        "0x‹hex:16›",
        "‹digits:10›.‹digits:6›",
        "#‹hex:6›",
        "ISBN 978-‹digits:1›-‹digits:3›-‹digits:5›-‹digits:1›",
        "timestamp=‹digits:13› pid=‹digits:5› tid=0x‹hex:12›",
        "-rw-r--r-- 1 dev dev ‹digits:6› ‹date› ‹path›",
        "chmod 0644 ‹path›  # inode ‹digits:8›",
    ],
    "logs": [
        '‹time› level=info msg="‹words:4›" request_id=‹base62:20› duration=‹digits:2›ms',
        '{"level":"info","ts":‹digits:10›.‹digits:3›,"caller":"‹path›:‹digits:3›","msg":"‹words:4›","reqId":"‹base62:16›"}',
        "[‹date› 10:11:12] production.INFO: Token refreshed for user ‹digits:4›",
        '‹ip› - - [04/Mar/2026:10:11:12 +0000] "GET /api/‹word›/‹hex:24› HTTP/1.1" 200 ‹digits:4›',
        "INFO  auth: session ‹uuid› started, token expires in 3600s",
        "DEBUG cache miss key=‹word›:‹hex:16› ttl=‹digits:3›",
        "DEBUG cache key: user:‹uuid›:permissions",
        "partition_key=‹word›#‹ulid›",
        "WARN  ‹words:8›",
    ],
    "Kubernetes": [
        "Normal  Scheduled  ‹digits:1›m  assigned default/‹kebab:2›-‹hex:10›-‹base62:5› to "
        "node-‹digits:2›",
        "pod/‹kebab:2›-‹hex:9›-x‹hex:4› condition met",
        "secret/‹kebab:2›-tls created",
        "    kubernetes.io/service-account.uid: ‹uuid›",
        '  resourceVersion: "‹digits:8›"',
        "  uid: ‹uuid›",
        "  checksum/config: ‹hex:64›",
        "default-token-‹base62:5›   kubernetes.io/service-account-token   3   ‹digits:2›d",
        "containerd://‹hex:64›",
    ],
    "stack traces": [
        '  File "/usr/lib/python3.11/site-packages/‹snake:1›/‹snake:2›.py", line ‹digits:3›, in '
        "‹snake:2›",
        "    at Object.<anonymous> "
        "(/app/node_modules/‹kebab:2›/dist/‹camel:2›.js:‹digits:3›:‹digits:2›)",
        "    at com.acme.‹word›.‹camel:3›.‹camel:2›(‹camel:2›.java:‹digits:3›)",
        "goroutine ‹digits:3› [running]: main.(*‹camel:2›).‹camel:2›(0xc000‹hex:6›)",
        "thread 'main' panicked at ‹path›:‹digits:3›:‹digits:2›:",
        "  0x0000‹hex:8› <+‹digits:2›>: movq %rax, ‹digits:2›(%rsp)",
    ],
    "checksums": [
        "‹hex:64›  ‹kebab:2›-‹semver›.tar.gz",
        "‹hex:32›  ‹path›",
        "SHA512 (‹kebab:2›.iso) = ‹hex:128›",
        "| ‹word› | `‹hex:40›` | ‹digits:3› |",
        "sha256: ‹hex:64›",
        "md5sum: ‹hex:32›",
        "  hash: ‹hex:64›",
        "sha1: ‹hex:40›",
        '"contentHash": "‹hex:64›",',
        "cache-key: npm-linux-‹hex:64›",
        "Cache restored from key: node-cache-Linux-x64-pnpm-‹hex:64›",
        '"fileHash":"‹b64:32›"',
    ],
    "branches and e-mail": [
        "feature/‹kebab:4›",
        "remotes/origin/dependabot/npm_and_yarn/‹kebab:2›-‹semver›",
        "Switched to a new branch 'claude/‹kebab:3›-‹base62:6›'",
        "Co-authored-by: ‹word› ‹word› <‹word›.‹word›@acme.test>",
        "‹digits:8›+‹word›@users.noreply.acme.test",
        "worktree /home/dev/‹kebab:2›  ‹hex:9› [‹kebab:3›]",
    ],
    "prose": [
        "‹words:14›.",
        "- **‹words:2›**: ‹words:10›",
        "I'll look at `‹path›` and ‹words:8›.",
        "// ‹words:9›",
    ],
    "cloud ids": [
        "arn:aws:iam::‹digits:12›:role/‹kebab:3›",
        "vpc-0‹hex:16› subnet-0‹hex:16› ami-0‹hex:16›",
        "projects/‹kebab:2›-‹digits:6›/locations/europe-west1/keyRings/‹word›/cryptoKeys/‹word›",
        "/subscriptions/‹uuid›/resourceGroups/‹kebab:2›/providers/Microsoft.‹camel:1›/‹word›",
        "client_id: ‹uuid›",
        'tenant_id = "‹uuid›"',
        "E‹base62:13›.cloudfront.test",
        "zone: Z0‹upperhex:18›",
        "key_id: ‹uuid›",
        'kms_key_arn = "arn:aws:kms:eu-west-1:‹digits:12›:key/‹uuid›"',
    ],
    "identifiers": [
        "‹camel:5›",
        "com.acme.‹word›.‹camel:3›Factory",
        "‹upper:6›",
        "_ZN‹digits:2›‹camel:2›‹digits:2›‹camel:3›E",
        "export { ‹camel:3›, ‹camel:3›, ‹camel:4› } from './‹kebab:2›';",
        'aria-labelledby="radix-:r‹hex:2›:" data-testid="‹kebab:4›"',
    ],
}


# lines of these that were flagged are counted, not shown: nobody tunes on them
HELD_OUT: dict[str, list[str]] = {
    "held out: locks": [
        '  "‹snake:1›": {:hex, :‹snake:1›, "‹semver›", "‹hex:64›", [:mix], [], "hexpm", '
        '"‹hex:64›"},',
        '            <sha256 value="‹hex:64›" origin="Generated by Gradle"/>',
        '        "narHash": "sha256-‹b64:32›",',
        '        "rev": "‹hex:40›",',
        '            "reference": "‹hex:40›",',
        '    "‹kebab:2›": ["‹kebab:2›@‹semver›", "", {}, "sha512-‹b64:64›"],',
        "    digest: ‹hex:64›",
        '  h1:‹b64:32›",',
        "      ‹kebab:2›: ^‹semver›",
        '"https://deno.land/std@0.‹digits:3›.0/‹word›/mod.ts": "‹hex:64›",',
    ],
    "held out: ids of things": [
        "\t\t‹upperhex:24› /* ‹camel:2›.swift in Sources */ = {isa = PBXBuildFile; fileRef = "
        "‹upperhex:24› };",
        "guid: ‹hex:32›",
        "m_Script: {fileID: ‹digits:8›, guid: ‹hex:32›, type: 3}",
        "0x‹hex:40› sent 0.‹digits:2› ETH in tx 0x‹hex:64›",
        "ipfs://bafybei‹base62:52›",
        "customer: cus_‹base62:14›, invoice: in_1‹base62:23›, event: evt_1‹base62:23›",
        "channel C0‹upperhex:9› user U0‹upperhex:9› ts ‹digits:10›.‹digits:6›",
        "Discord message ‹digits:18› in channel ‹digits:18›",
        "G-‹upperhex:10› UA-‹digits:8›-1 GTM-‹upperhex:7›",
        "‹upper:1›-‹digits:4› ‹words:6›",
        "x-amz-id-2: ‹b64:56›",
        "x-amz-version-id: ‹base62:32›",
        "logStreamName: ‹date›/[$LATEST]‹hex:32›",
        '{"traceId":"‹hex:32›","spanId":"‹hex:16›","parentSpanId":"‹hex:16›","name":"‹snake:2›"}',
        "event_id=‹hex:32› fingerprint=‹hex:32›",
        '   "id": "‹hex:8›",',
        'lineage = "‹uuid›"',
        "aws_instance.‹word›: Still creating... [id=i-0‹hex:17›, 10s elapsed]",
        "session_id: ‹uuid›",
        "conversation ‹uuid› resumed from thread_‹base62:24›",
        "pk: USER#‹ulid›  sk: ORDER#‹ulid›",
    ],
    "held out: code": [
        "val token: String? = prefs.getString(KEY_TOKEN, null)",
        "guard let token = keychain.token(for: account) else { return nil }",
        "public string Password { get; set; } = string.Empty;",
        "Token(type='NAME', value='‹word›', line=‹digits:2›, column=‹digits:2›)",
        "token: ' ‹word›' id: ‹digits:5› logprob: -0.‹digits:4›",
        '        "secretsmanager:GetSecretValue",',
        "  secretArn: !Sub "
        "arn:aws:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:‹kebab:2›",
        "<Row key={`${item.id}-${index}`} data-key={item.‹word›} />",
        "FOREIGN KEY (‹word›_id) REFERENCES ‹word› (id) ON DELETE CASCADE",
        "if (event.key === 'Enter' && !event.shiftKey) {",
        "password = models.CharField(_('password'), max_length=128)",
        'raise ValueError(f"unknown token {token!r} at {self.position}")',
        "assert_eq!(parse_token(input), Ok(Token::‹camel:2›));",
        "http.DefaultClient.SetBasicAuth(cfg.User, cfg.Password)",
        "  api_key_env_var: ‹upper:2›_API_KEY",
        "AUTH_TOKEN_EXPIRY_SECONDS = 60 * 60 * 24",
        "password: process.env.DB_PASSWORD ?? fail('DB_PASSWORD'),",
        "export const selectToken = (state: RootState) => state.auth.token;",
        "vault write auth/approle/login role_id=$ROLE_ID secret_id=$SECRET_ID",
        'curl -u "$USER:$PASS" https://‹word›.test/‹word›',
        "ssh-keygen -t ed25519 -f ~/.ssh/‹kebab:2› -N ''",
        "openssl rand -base64 32 > secrets/‹word›.key",
        "‹camel:2›.credentials = credentials('‹kebab:2›-token')",
        "secrets: inherit",
        "  keyFile: /run/secrets/‹snake:2›_key",
        "tokens_per_second: ‹digits:2›.‹digits:2›",
        "key: ${{ runner.os }}-cargo-${{ hashFiles('**/Cargo.lock') }}",
        "const cacheKey = `${userId}:${hash(query)}`;",
    ],
    "held out: words": [
        "The passkey flow replaces passwords; keys never leave the device.",
        "Keyword arguments: ‹snake:2›, ‹snake:2›, ‹snake:2›",
        "Please enter the password you received by mail.",
        "the secret was rotated in ‹hex:8› and the token in ‹hex:8›",
        "token budget: ‹digits:5› of ‹digits:6›",
        "The access key for ‹word› is managed by Terraform.",
        "Password must contain at least 12 characters, one digit and one symbol.",
        "auth: token refresh took ‹digits:3› ms for ‹uuid›",
        "Your API key will look like sk-xxxxxxxxxxxxxxxx.",
        "Bearer token missing or malformed",
        "secret scanning found 0 secrets in ‹digits:4› files",
        "see https://docs.acme.test/authentication#tokens-and-api-keys",
    ],
}


def _placeholder(ink: Ink) -> str:
    return ink.rng.choice(_PLACEHOLDERS)


def benign(per_template: int = 20, seed: int = 1) -> list[tuple[str, str]]:
    """(kind, line) of every template, that many times."""
    lines: list[tuple[str, str]] = []
    for kind, templates in (TEMPLATES | HELD_OUT).items():
        ink = Ink(Random(f"{seed}:{kind}"))
        for template in templates:
            for _ in range(per_template):
                lines.append((kind, ink.fill(template.replace("‹placeholder›", _placeholder(ink)))))
    return lines
