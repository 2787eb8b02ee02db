"""Settings of the team server: each error names its variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import check_each
from whyfor.model.errors import BadInput
from whyfor.team.settings import load_team_settings

ENV = {
    "WHYFOR_DB_URL": "postgresql://app@db/whyfor",
    "WHYFOR_BLOBS_URL": "s3://stories",
    "WHYFOR_PUBLIC_URL": "https://Whyfor.example.com/",
}


def test_a_server_is_described_by_its_environment(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("from a file\n")
    found = load_team_settings(
        {
            **ENV,
            "WHYFOR_OIDC_ISSUER": "https://login.example.com",
            "WHYFOR_OIDC_CLIENT_ID": "whyfor",
            "WHYFOR_OIDC_CLIENT_SECRET_FILE": str(secret),
            "WHYFOR_OIDC_DOMAINS": "example.com, @Example.org",
            "WHYFOR_TRUSTED_PROXIES": "127.0.0.1 10.0.0.0/8",
        }
    )
    assert found.public_url == "https://whyfor.example.com"
    assert (found.host, found.domain) == ("whyfor.example.com", "whyfor.example.com")
    assert found.owner_url == found.db_url
    assert found.oidc is not None
    assert found.oidc.client_secret == "from a file"
    assert found.oidc.domains == ("example.com", "example.org")
    assert len(found.networks) == 2


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    cases = {
        "WHYFOR_DB_URL": {"WHYFOR_DB_URL": ""},
        "WHYFOR_DB_URL is no": {"WHYFOR_DB_URL": "mysql://x"},
        "WHYFOR_BLOBS_URL": {"WHYFOR_BLOBS_URL": ""},
        "begins with https": {"WHYFOR_PUBLIC_URL": "http://whyfor.example.com"},
        "without a path": {"WHYFOR_PUBLIC_URL": "https://example.com/whyfor"},
        "WHYFOR_DB_URL_FILE cannot": {
            "WHYFOR_DB_URL": "",
            "WHYFOR_DB_URL_FILE": str(tmp_path / "gone"),
        },
        "both set": {"WHYFOR_DB_URL_FILE": str(tmp_path)},
        "WHYFOR_OIDC_CLIENT_ID": {"WHYFOR_OIDC_ISSUER": "https://x.example"},
        "WHYFOR_METRICS_PORT": {"WHYFOR_METRICS_PORT": "many"},
        "WHYFOR_LISTEN_ADDRESS": {"WHYFOR_LISTEN_ADDRESS": "8080"},
        "WHYFOR_TRUSTED_PROXIES": {"WHYFOR_TRUSTED_PROXIES": "the-proxy"},
    }

    def check(case: tuple[str, dict[str, str]]) -> None:
        words, env = case
        with pytest.raises(BadInput, match=words):
            load_team_settings({**ENV, **env})

    check_each([(name, (name, env)) for name, env in cases.items()], check)
    load_team_settings({**ENV, "WHYFOR_PUBLIC_URL": "http://localhost:8080"})
