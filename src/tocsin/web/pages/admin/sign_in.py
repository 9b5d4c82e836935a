"""`/login` and `/logout`: sign in with an API key, and sign out."""

from __future__ import annotations

from dataclasses import replace

from starlette.responses import RedirectResponse, Response

from tocsin.model.access import IDENTITY_PREFIX
from tocsin.model.audit import AuditAction
from tocsin.web.http.access import AuthFailures
from tocsin.web.http.errors import Forbidden, ForeignSource
from tocsin.web.pages.admin.sessions import Sessions
from tocsin.web.pages.admin.single_sign_on import SingleSignOn, within
from tocsin.web.pages.context import NewCookie, RequestContext
from tocsin.web.pages.site import Part, Site, route

_NO_KEY = (
    "This API key is unknown, deleted or expired. An API key begins with tk_ and is shown once, when it is created."
)


class SignInPart(Part):
    """Signing in and out."""

    def __init__(self, site: Site, sessions: Sessions, auth_failures: AuthFailures, single: SingleSignOn) -> None:
        super().__init__(site)
        self._single = single
        self._auth_failures = auth_failures
        self._sessions = sessions

    @route("GET", "/login")
    async def show(self, context: RequestContext) -> Response:
        """The form. It also works where keys are optional, to see the pages with the permissions of a key."""
        to = within(context.query.exact("to"))
        if context.principal.key is not None:
            return RedirectResponse(to, 303)
        return self._pages.page("admin/login.html", context, title="Sign in", message="", to=to)

    @route("POST", "/login")
    async def sign_in(self, context: RequestContext) -> Response:
        """Signs in with a valid key under a new cookie, which prevents session fixation."""
        to = within(context.form.exact("to"))
        try:
            cookie = await self._sessions.sign_in(context.form.get("key"), context.address)
        except Forbidden as error:
            if isinstance(error, ForeignSource):
                self._auth_failures.report(context.address, "foreign_source", "pages", error.key_id)
            message = f"{str(error)[:1].upper()}{str(error)[1:]}."
            return self._pages.page("admin/login.html", context, 403, title="Sign in", message=message, to=to)
        if cookie is None:
            suppressed = self._auth_failures.failure(context.address, "unknown_key", "pages")
            if suppressed is not None:
                anonymous = replace(context.actor, key_id=None)
                await self._site.audit.write(
                    AuditAction.SIGN_IN_FAILED, anonymous, details={"failuresLeftOut": suppressed}
                )
            return self._pages.page("admin/login.html", context, 403, title="Sign in", message=_NO_KEY, to=to)
        principal = await self._sessions.principal(cookie)
        if principal is not None and principal.key is not None:
            actor = replace(context.actor, key_id=principal.key.key_id, name=principal.key.note)
            await self._site.audit.write(AuditAction.SIGN_IN, actor)
        return NewCookie(to, cookie)

    @route("POST", "/logout")
    async def sign_out(self, context: RequestContext) -> Response:
        """Ends the session, for copies of the cookie too."""
        await self._sessions.sign_out(context.cookie)
        key = context.principal.key
        if key is not None:
            await self._site.audit.write(AuditAction.SIGN_OUT, context.actor)
        if key is not None and key.key_id.startswith(IDENTITY_PREFIX):
            elsewhere = await self._single.sign_out_url(context)
            if elsewhere is not None:
                return self._single.going_on(context, elsewhere, self._sessions.new_cookie())
        return NewCookie("/login" if self._sessions.required else "/", self._sessions.new_cookie())
