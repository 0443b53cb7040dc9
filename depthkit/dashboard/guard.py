"""Addresses for the pages, in Panel's server; and what keeps strangers out.

Every request passes :class:`Guard` first: it checks the name the browser called (so that no
website can reach a server on loopback by a name of its own), the token where there is one, and
where a form was sent from. Every answer, Bokeh's and Panel's own ones included, carries the policy
headers.
"""

from __future__ import annotations

import hmac
import logging
import secrets
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tornado import httputil, routing, web

log = logging.getLogger(__name__)

COOKIE = "depthkit-token"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "object-src 'none'; frame-ancestors 'none'"
)
"""For every answer; pages that need more say so below, and nothing needs another origin."""

DRAWN = POLICY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
"""Bokeh puts style sheets of its own into the page (pages with plots)."""

PLAYED = DRAWN.replace("script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'")
"""The player's terminal is WebAssembly, and it styles its parts in place (pages of runs)."""

REPORT = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; "
    "script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:; "
    "font-src data:; base-uri 'none'; object-src 'none'; frame-ancestors 'none'"
)
"""A made report holds all it needs in one file; in a sandbox it can reach nothing of the rest."""

PANEL = DRAWN.replace("script-src 'self'", "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:")
"""Panel starts its applications by a script in the page, and compiles its own templates."""


@dataclass(frozen=True)
class Access:
    """Who may ask.

    Attributes:
        hosts: Names, with port, by which the server may be called; ``None`` for any, which only
            a token makes safe.
        token: What a browser must show once; ``None`` where none is needed.
    """

    hosts: frozenset[str] | None
    token: str | None

    def refuse(self, request: httputil.HTTPServerRequest) -> tuple[int, str] | None:
        """Status and reason why a request gets no answer; ``None`` if it gets one."""
        if self.hosts is not None and request.headers.get("Host", "") not in self.hosts:
            return 421, "This server answers only to its own name."
        if request.method not in ("GET", "HEAD") or request.headers.get("Upgrade"):
            origin = request.headers.get("Origin")
            host = request.headers.get("Host", "")
            if origin is None or urlsplit(origin).netloc != host:
                return 403, "Forms are taken from the dashboard's own pages only."
        if self.token is None or self._shown(request):
            return None
        return 401, "A token is needed: open the address that depthkit dashboard printed."

    def _shown(self, request: httputil.HTTPServerRequest) -> bool:
        assert self.token is not None
        given = [value.value for name, value in request.cookies.items() if name == COOKIE]
        return any(hmac.compare_digest(value.encode(), self.token.encode()) for value in given)

    def entering(self, request: httputil.HTTPServerRequest) -> bool:
        """Whether the address itself holds the right token."""
        given = parse_qs(request.query).get("token", [""])[0]
        return self.token is not None and hmac.compare_digest(given.encode(), self.token.encode())


class Guard(routing.Router):
    """Asks :class:`Access` before any handler is found."""

    def __init__(self, application: web.Application, access: Access) -> None:
        self.application = application
        self.access = access

    def find_handler(
        self, request: httputil.HTTPServerRequest, **_: Any
    ) -> httputil.HTTPMessageDelegate | None:
        """The application's handler, or one that refuses."""
        refused = self.access.refuse(request)
        if refused is None:
            return self.application.find_handler(request)
        if refused[0] == 401 and self.access.entering(request):
            return self.application.get_handler_delegate(
                request, EnterHandler, {"token": self.access.token}
            )
        status, reason = refused
        return self.application.get_handler_delegate(
            request, RefuseHandler, {"status": status, "reason": reason}
        )


class PolicyHeaders(web.OutputTransform):
    """Headers of every answer of the application."""

    def __init__(self, request: httputil.HTTPServerRequest) -> None:
        self.path = request.path

    def transform_first_chunk(
        self,
        status_code: int,
        headers: httputil.HTTPHeaders,
        chunk: bytes,
        finishing: bool,  # noqa: ARG002
    ) -> tuple[int, httputil.HTTPHeaders, bytes]:
        """Add them to the first part of an answer."""
        default = PANEL if self.path.startswith("/panel") else POLICY
        headers.setdefault("Content-Security-Policy", default)
        headers["X-Content-Type-Options"] = "nosniff"
        headers["Referrer-Policy"] = "same-origin"
        headers["Cross-Origin-Resource-Policy"] = "same-origin"
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
        headers.pop("Server", None)
        return status_code, headers, chunk


class RefuseHandler(web.RequestHandler):
    """Says why there is no answer."""

    def initialize(self, status: int, reason: str) -> None:
        """Take the reason."""
        self.status, self.reason = status, reason

    def prepare(self) -> None:
        """Answer before anything is done."""
        self.set_status(self.status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(self.reason + "\n")


class EnterHandler(web.RequestHandler):
    """Takes the token off the address and into a cookie that scripts cannot read."""

    def initialize(self, token: str) -> None:
        """Take the token."""
        self.token = token

    def get(self) -> None:
        """Set the cookie and go to the same address without the token."""
        self.set_cookie(COOKIE, self.token, httponly=True, samesite="Strict", expires_days=30)
        query = parse_qs(self.request.query)
        query.pop("token", None)
        rest = urlencode(query, doseq=True)
        self.redirect(f"{_local(self.request.path)}{'?' if rest else ''}{rest}")


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(24)


def _local(path: str) -> str:
    """An address on this server, whatever stands in it."""
    return "/" + path.lstrip("/\\")
