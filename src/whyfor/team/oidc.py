"""Entering with an organisation's own OpenID provider."""

from __future__ import annotations

from whyfor.model.errors import BadInput, Forbidden
from whyfor.team.entry import Entering, check_email, check_name, new_session, read_invite
from whyfor.team.oidc_provider import OidcPerson
from whyfor.team.resources import TeamResources
from whyfor.team.tokens import hash_token


def enter_with_identity(
    team: TeamResources, who: OidcPerson, invite: str, entering: Entering
) -> str:
    """Sign in who is known, or let them join; return the token of the browser's session. Raises
    Forbidden for everybody else."""
    now = team.now()
    with team.database.accounts.by(None) as accounts:
        person = accounts.person_of_identity(who.issuer, who.subject)
        if person is not None:
            return new_session(accounts, person, entering, now)
        if not who.verified:
            raise Forbidden("your organisation has not verified your e-mail address", "Ask it to.")
        name, email = check_name(who.name[:80]), check_email(who.email)
        if invite:
            known = read_invite(team, invite)
            if known.email and known.email.lower() != email.lower():
                raise Forbidden("this invitation is for another address", "Ask for one of yours.")
            person = accounts.accept_invite(hash_token(invite), now, name, email)
            if person is None:
                raise BadInput("this link was used already", "Ask for a new one.")
        else:
            domains = team.settings.oidc.domains if team.settings.oidc else ()
            if email.rpartition("@")[2].lower() not in domains:
                raise Forbidden("you are not invited", "Ask an admin of the team for a link.")
            [(organisation, _), *_] = accounts.teams()
            person = accounts.join_team(organisation, name, email, now)
        accounts.become(person)
        accounts.add_identity(who.issuer, who.subject, now)
        return new_session(accounts, person, entering, now)
