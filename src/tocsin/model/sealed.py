"""Which parts of what is sent are sealed: those that `tocsin.model.redaction` calls secrets. All else stays as it is.

Texts are sealed where requests become timers, before `[redacted]` is replaced with what is stored, which is sealed already;
they are opened only where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from tocsin.model.hooks import NO_HOOKS, Hook
from tocsin.model.redaction import is_mark, is_secret, replace_secrets_in, withheld
from tocsin.model.sealed_text import SEALED, SEALED_PREFIX, is_sealed
from tocsin.model.stored_secrets import hooks_by_event
from tocsin.model.timer import Changes, Timer

#: Seals or opens one text.
Change = Callable[[str], str]


def url_sealed(url: str, seal: Change) -> str:
    """The URL with its secrets sealed, and without its fragment, which is never sent. A redacted one, which stands for the
    stored one, stays as it is."""
    if ("=" not in url and "#" not in url) or withheld(url, None):
        return url
    return replace_secrets_in(url.partition("#")[0], seal)


def url_opened(url: str, unseal: Change) -> str:
    """The URL with what is sealed in it opened."""
    return SEALED.sub(lambda match: unseal(match[0]), url) if SEALED_PREFIX in url else url


def headers_sealed(headers: Mapping[str, str], seal: Change) -> dict[str, str]:
    """The headers with their secrets sealed, but for `[redacted]`, which stands for what is stored."""
    return {
        name: seal(value) if is_secret(name, value) and not is_mark(value) else value for name, value in headers.items()
    }


def headers_opened(headers: dict[str, str] | None, unseal: Change) -> dict[str, str] | None:
    """The headers with what is sealed in them opened; the same object if nothing is."""
    for value in (headers or {}).values():
        if value.startswith(SEALED_PREFIX):
            return {name: unseal(each) if is_sealed(each) else each for name, each in (headers or {}).items()}
    return headers


def hooks_sealed(hooks: Mapping[str, Hook | None], seal: Change) -> dict[str, Hook | None]:
    """The hooks by their events, with their secrets sealed."""
    return {event: hook and _hook_sealed(hook, seal) for event, hook in hooks.items()}


def hooks_opened(hooks: Mapping[str, Hook | None], unseal: Change) -> dict[str, Hook | None]:
    """The hooks by their events, with what is sealed in them opened."""
    return {
        event: hook
        and msgspec.structs.replace(
            hook, url=url_opened(hook.url, unseal), headers=headers_opened(hook.headers, unseal)
        )
        for event, hook in hooks.items()
    }


def _hook_sealed(hook: Hook, seal: Change) -> Hook:
    headers = None if hook.headers is None else headers_sealed(hook.headers, seal)
    return msgspec.structs.replace(hook, url=url_sealed(hook.url, seal), headers=headers)


def seal_timer(timer: Timer, seal: Change) -> None:
    """Seals the secrets of a new timer, schedule or monitor."""
    timer.url = url_sealed(timer.url, seal)
    if timer.headers:
        timer.headers = headers_sealed(timer.headers, seal)
    if timer.hooks is not None:
        timer.hooks = NO_HOOKS.changed(hooks_sealed(hooks_by_event(timer), seal))


def changes_sealed(changes: Changes, seal: Change) -> Changes:
    """The changes with their secrets sealed."""
    url, headers, hooks = changes.url, changes.headers, changes.hooks
    if not (url or headers or hooks):
        return changes
    return msgspec.structs.replace(
        changes,
        url=url_sealed(url, seal) if url else url,
        headers=headers_sealed(headers, seal) if headers else headers,
        hooks=hooks_sealed(hooks, seal) if hooks else hooks,
    )
