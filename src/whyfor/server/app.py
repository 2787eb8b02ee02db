"""The application: pages, API and static files behind one guard."""

from __future__ import annotations

from jinja2 import Environment
from litestar import Litestar
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.plugins.jinja import JinjaTemplateEngine
from litestar.static_files import create_static_files_router
from litestar.template import TemplateConfig
from litestar.types import Receive, Scope, Send

from whyfor import __version__
from whyfor.config import Settings
from whyfor.live.answer_address import read_answer_key
from whyfor.live.approvals import AnswerDesk, settled_by
from whyfor.live.board import PreviewCache
from whyfor.live.hub import Hub
from whyfor.live.project_names import ProjectNames
from whyfor.model.errors import WhyforError
from whyfor.server import api, pages, problems
from whyfor.server.guard import BODY_BYTES, UNTIL, AgentAnswers, Guard
from whyfor.server.page import NAVIGATION, TEMPLATES
from whyfor.server.render import WEB, environment
from whyfor.server.telemetry import TelemetryDoor
from whyfor.service.rules import rules_mode
from whyfor.service.serve import AccessKeys
from whyfor.service.telemetry import keep_telemetry, read_telemetry_key
from whyfor.service.today import TodayCache


class App(Litestar):
    """The application behind the guard; unknown paths are guarded too."""

    guard: Guard
    templates: Environment

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # type: ignore[override]
        if scope["type"] == "lifespan":  # type: ignore[comparison-overlap]
            await super().__call__(scope, receive, send)
        else:
            TEMPLATES.set(self.templates)
            await self.guard(scope, receive, send, super().__call__)


def create_app(
    settings: Settings, *, port: int, keys: AccessKeys | None = None, hub: Hub | None = None
) -> App:
    """Return the application. `hub` is notified by whoever ingests; without one, it polls the
    store."""
    hub = hub or Hub(settings)
    glances = PreviewCache(settings)
    desk = AnswerDesk(settings)
    today = TodayCache(settings)
    templates = environment(ProjectNames(settings))
    templates.globals["approvals"] = lambda: sum(
        1 for each in hub.standings if each.status.approval
    )
    templates.globals["rules_on"] = lambda: rules_mode(settings) == "on"
    templates.globals["pages"] = NAVIGATION
    templates.globals["link_base"] = lambda: ""
    templates.globals["team"] = None
    app = App(
        [
            *pages.HANDLERS,
            *api.HANDLERS,
            create_static_files_router("/static", [WEB / "static"], include_in_schema=False),
        ],
        dependencies={
            "settings": Provide(lambda: settings, sync_to_thread=False),
            "hub": Provide(lambda: hub, sync_to_thread=False),
            "glances": Provide(lambda: glances, sync_to_thread=False),
            "desk": Provide(lambda: desk, sync_to_thread=False),
            "today": Provide(lambda: today, sync_to_thread=False),
        },
        exception_handlers={
            WhyforError: problems.expected,
            HTTPException: problems.from_http,
            Exception: problems.unexpected,
        },
        template_config=TemplateConfig(instance=JinjaTemplateEngine(engine_instance=templates)),
        openapi_config=_openapi(),
        lifespan=[lambda _: hub.running()],
        logging_config=None,
        request_max_body_size=BODY_BYTES,
    )
    app.templates = templates
    answers = AgentAnswers(
        lambda: read_answer_key(settings),
        lambda agent, body: desk.hold(agent, body, settled_by(hub)),
    )
    app.guard = Guard(keys or AccessKeys(settings), port, answers)
    app.guard.telemetry = TelemetryDoor(
        lambda: read_telemetry_key(settings), lambda body: keep_telemetry(settings, body)
    )
    templates.globals["page_key"] = lambda: app.guard.start.make_page_key(UNTIL.get())
    templates.globals["form_token"] = lambda: app.guard.start.make_form_token(UNTIL.get())
    return app


def _openapi() -> OpenAPIConfig:
    bearer = SecurityScheme(
        type="http", scheme="bearer", description="The token in $WHYFOR_HOME/serve.token."
    )
    return OpenAPIConfig(
        title="Whyfor",
        version=__version__,
        path="/api/schema",
        render_plugins=[JsonRenderPlugin(path="/")],
        components=Components(security_schemes={"token": bearer}),
        security=[{"token": []}],
        use_handler_docstrings=True,
    )
