"""`/login/oidc`: sign in at the identity provider, and come back.

Between the two the browser keeps what the answer has to match, in a cookie of its own: any node can serve the return, and
none stores sign-ins that nobody finishes.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.model.audit import AuditAction
from tocsin.web.http.access import AuthFailures
from tocsin.web.pages.admin.sessions import Sessions
from tocsin.web.pages.context import NewCookiePage, RequestContext, cookie_name, cookie_value
from tocsin.web.pages.site import Part, Site, route

if TYPE_CHECKING:
    from tocsin.sso.provider import Provider

BEGIN, CALLBACK = "/login/oidc", "/login/oidc/callback"
_COOKIE = "-sign-in"


class SingleSignOn(Part):
    """Signing in and out by the identity provider."""

    def __init__(self, site: Site, sessions: Sessions, provider: Provider | None, auth_failures: AuthFailures) -> None:
        super().__init__(site)
        self._sessions, self._provider = sessions, provider
        self._auth_failures = auth_failures

    @route("GET", BEGIN)
    async def begin(self, context: RequestContext) -> Response:
        """Sends the browser to the provider."""
        if self._provider is None:
            return RedirectResponse("/login", 303)
        name = cookie_name(context.request, _COOKIE, secure=context.secure)
        url, flow = await self._provider.begin(self._address(context, CALLBACK), within(context.query.exact("to")))
        response = RedirectResponse(url, 303)
        kept = urlsafe_b64encode(msgspec.json.encode(flow)).decode()
        # Lax: the way back begins at another site.
        response.set_cookie(name, kept, path="/", httponly=True, samesite="lax", secure=context.secure)
        return response

    @route("GET", CALLBACK)
    async def complete(self, context: RequestContext) -> Response:
        """Signs in who comes back, under a new cookie."""
        from tocsin.sso.provider import Flow, SignInRefused

        provider, answer = self._provider, dict(context.request.query_params)
        name = cookie_name(context.request, _COOKIE, secure=context.secure)
        kept = cookie_value(context.request, name)
        if provider is None:
            return RedirectResponse("/login", 303)
        try:
            if not kept:
                raise SignInRefused("This answer belongs to no sign-in of this browser. Sign in again.")
            try:
                flow = msgspec.json.decode(urlsafe_b64decode(kept.encode()), type=Flow)
            except ValueError as error:
                raise SignInRefused("This answer belongs to no sign-in of this browser. Sign in again.") from error
            # An invented code costs the provider a request.
            self._auth_failures.check(context.address)
            identity = await provider.complete(flow, answer)
        except SignInRefused as refusal:
            response = await self._refused(context, str(refusal))
        else:
            key = provider.permitted(identity)
            assert key is not None
            cookie = await self._sessions.sign_in_identity(key, identity.groups)
            await self._site.audit.write(
                AuditAction.SIGN_IN,
                replace(context.actor, key_id=identity.id, name=identity.name),
                details={"name": identity.name, "groups": list(identity.groups)},
            )
            response = self.going_on(context, within(flow.to), cookie)
        response.delete_cookie(name, path="/", httponly=True, samesite="lax", secure=context.secure)
        return response

    def going_on(self, context: RequestContext, to: str, cookie: str) -> NewCookiePage:
        """A page that goes on to another with this cookie."""
        return NewCookiePage(self._pages.text("admin/going_on.html", context, {"to": to}), cookie)

    async def sign_out_url(self, context: RequestContext) -> str | None:
        """Where somebody whom the provider has signed in signs out of it."""
        if self._provider is None:
            return None
        return await self._provider.sign_out_url(self._address(context, "/login"))

    async def _refused(self, context: RequestContext, why: str) -> Response:
        suppressed = self._auth_failures.failure(context.address, "identity", "pages")
        if suppressed is not None:
            await self._site.audit.write(
                AuditAction.SIGN_IN_FAILED,
                replace(context.actor, key_id=None),
                details={"reason": why, "failuresLeftOut": suppressed},
            )
        return self._pages.page("admin/login.html", context, 403, title="Sign in", message=why, to="/")

    def _address(self, context: RequestContext, path: str) -> str:
        """The URL of a page of this server as the browser knows it. The host has been checked."""
        return context.server + path


def within(path: str) -> str:
    """The path if it is one on this server, or `/`: a sign-in never redirects to another site."""
    plain = path.startswith("/") and not path.startswith("//") and "\\" not in path
    return path if plain and path.isascii() and path.isprintable() else "/"
