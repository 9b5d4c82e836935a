"""`[redacted]` in requests about timers and schedules: it stands for the secret that the stored one has in this place."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, UnsetType

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.hooks import NO_HOOKS, Hook, Hooks, field_of
from tocsin.model.redaction import with_headers, with_url, withheld
from tocsin.model.timer import Changes, Timer


def withholds(call: Timer | Changes) -> bool:
    """Whether the URL, a header or a hook has `[redacted]` in place of a stored secret."""
    return withheld(call.url or None, call.headers or None) or (
        bool(call.hooks) and withholds_hook(hooks_by_event(call))
    )


def withholds_hook(hooks: Mapping[str, Hook | None]) -> bool:
    """The same of hooks by their events."""
    return any(hook is not None and withheld(hook.url, hook.headers) for hook in hooks.values())


def take_secrets(timer: Timer, stored: Timer | None) -> None:
    """Gives a timer the secrets of a stored one. Raises InvalidInput with the fields of which no secret is stored: a URL's
    secrets would otherwise be sent to another destination."""
    timer.url = with_url(timer.url, None if stored is None else stored.url)
    if timer.headers is not None:
        timer.headers = with_headers(timer.headers, None if stored is None else stored.headers)
    if timer.hooks is not None:
        hooks = with_hooks(hooks_by_event(timer), None if stored is None else stored.hooks)
        timer.hooks = NO_HOOKS.changed(hooks)


def with_secrets(changes: Changes, stored: Timer) -> Changes:
    """The changes with the secrets of the stored timer. Raises InvalidInput like `take_secrets`."""
    url, headers, hooks = changes.url, changes.headers, changes.hooks
    return msgspec.structs.replace(
        changes,
        url=with_url(url, stored.url) if url else url,
        headers=with_headers(headers, stored.headers) if headers else headers,
        hooks=with_hooks(hooks, stored.hooks) if hooks else hooks,
    )


def with_hooks(hooks: Mapping[str, Hook | None], stored: Hooks | None) -> dict[str, Hook | None]:
    """The hooks by their events, with stored secrets. Raises InvalidInput like `take_secrets`."""
    return {event: hook and _with_secrets(event, hook, stored) for event, hook in hooks.items()}


def _with_secrets(event: str, hook: Hook, stored: Hooks | None) -> Hook:
    known: Hook | None = None if stored is None else getattr(stored, event)
    try:
        url = with_url(hook.url, None if known is None else known.url, "url")
        if hook.headers is None:
            return Hook(url, None, hook.credential)
        headers = with_headers(hook.headers, None if known is None else known.headers)
        return Hook(url, headers, hook.credential)
    except InvalidInput as error:
        fields = (FieldError(f"{field_of(event)}.{bad.path}", bad.reason) for bad in error.errors)
        raise InvalidInput(*fields) from None


def hooks_by_event(call: Timer | Changes) -> Mapping[str, Hook | None]:
    """The hooks of a timer, or those that a change has."""
    hooks: Hooks | Mapping[str, Hook | None] | UnsetType | None = call.hooks
    if hooks is None or hooks is UNSET:
        return {}
    return msgspec.structs.asdict(hooks) if isinstance(hooks, Hooks) else hooks
