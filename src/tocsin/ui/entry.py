"""`/login`: an API key becomes a session."""

from __future__ import annotations

from dataclasses import replace

from starlette.responses import RedirectResponse, Response

from tocsin.http.auth_failures import AuthFailures
from tocsin.model.audit import AuditAction
from tocsin.ports.audit import AuditLog
from tocsin.ui.pages import Pages
from tocsin.ui.sessions import Sessions
from tocsin.ui.show import utc
from tocsin.ui.visit import Handler, NewCookie, Visit

_LEFT_HERE = (
    "You are signed out here. The store did not answer, so other nodes still accept a copy of your cookie until it does. "
    "If somebody may have one, delete the key."
)
_UNKNOWN = (
    "The store has not answered since {}, so sign-ins from before are not accepted. A new one holds on this node only."
)
_NO_KEY = (
    "No such key. It begins with tk_ and was shown once, when it was made; it may have been revoked or have expired."
)


class EntryHandlers:
    """Signing in and out."""

    def __init__(self, pages: Pages, sessions: Sessions, auth_failures: AuthFailures, audit: AuditLog) -> None:
        self._audit = audit
        self._auth_failures = auth_failures
        self._pages = pages
        self._sessions = sessions

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths, handlers."""
        return [("GET", "/login", self.show), ("POST", "/login", self.enter), ("POST", "/logout", self.leave)]

    async def show(self, visit: Visit) -> Response:
        """The form. Where keys are optional one may still sign in, to see what a key sees."""
        to = _within(visit.query.exact("to"))
        if visit.visitor.key is not None:
            return RedirectResponse(to, 303)
        message = _LEFT_HERE if visit.query.get("left") == "here" else ""
        since_s = self._sessions.unknown_since_s
        if since_s is not None:
            message = f"{message} {_UNKNOWN.format(utc(round(since_s * 1e6)))}".strip()
        return self._pages.page("login.html", visit, title="Sign in", message=message, to=to)

    async def enter(self, visit: Visit) -> Response:
        """A key that is known gets a session under a new cookie, so that nobody can have planted it."""
        to = _within(visit.form.exact("to"))
        cookie = await self._sessions.sign_in(visit.form.get("key"))
        if cookie is None:
            left_out = self._auth_failures.failure(visit.address, "unknown_key", "pages")
            if left_out is not None:
                nobody = replace(visit.actor, key_id=None)
                await self._audit.write(AuditAction.SIGN_IN_FAILED, nobody, details={"failuresLeftOut": left_out})
            return self._pages.page("login.html", visit, 403, title="Sign in", message=_NO_KEY, to=to)
        visitor = await self._sessions.visitor(cookie)
        if visitor is not None and visitor.key is not None:
            await self._audit.write(AuditAction.SIGN_IN, replace(visit.actor, key_id=visitor.key.key_id))
        return NewCookie(to, cookie)

    async def leave(self, visit: Visit) -> Response:
        """The session ends, whatever the browser or somebody else keeps; where not on all nodes yet, that is said."""
        everywhere = await self._sessions.sign_out(visit.cookie)
        if visit.visitor.key is not None:
            await self._audit.write(AuditAction.SIGN_OUT, visit.actor)
        to = "/login" if self._sessions.required else "/"
        return NewCookie(to if everywhere else "/login?left=here", self._sessions.new_cookie())


def _within(path: str) -> str:
    """A path on this server, or the first page: nobody is led elsewhere after signing in."""
    plain = path.startswith("/") and not path.startswith("//") and "\\" not in path
    return path if plain and path.isascii() and path.isprintable() else "/"
