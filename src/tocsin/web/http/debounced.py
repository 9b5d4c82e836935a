"""The fields of debounced creates, and what debounced timers are answered with."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from tocsin.model.condition import OnConflict
from tocsin.model.debounce import Debounce, DebounceWindow
from tocsin.model.errors import FieldError
from tocsin.model.instants import format_instant, parse_duration
from tocsin.model.timer import BODILESS_METHODS
from tocsin.model.validation import InputRules
from tocsin.web.http import wire
from tocsin.web.http.instants import read
from tocsin.web.http.optional import or_default


def debounce_of(sent: wire.CreateTimer) -> Debounce | None:
    """What a checked request for a debounced create asks for; None if it is no such request."""
    if sent.on_conflict is not OnConflict.DEBOUNCE or sent.delay is UNSET or sent.max_delay is UNSET:
        return None
    collect = or_default(sent.collect, 0)
    return Debounce(parse_duration(sent.delay), parse_duration(sent.max_delay), collect)


def bad_debounce(sent: wire.CreateTimer, rules: InputRules) -> list[FieldError]:
    """What is wrong with the fields of a create about debouncing, beyond its values' ranges and a bad `delay`."""
    if sent.on_conflict is not OnConflict.DEBOUNCE:
        reason = 'needs onConflict "debounce"; set that, or leave it out'
        values = {"maxDelay": sent.max_delay, "collect": sent.collect}
        return [FieldError(name, reason) for name, value in values.items() if value is not UNSET]
    errors = []
    if sent.execute_at is not UNSET:
        reason = 'conflicts with onConflict "debounce", which counts from the latest create; send delay and maxDelay'
        errors.append(FieldError("executeAt", reason))
    elif sent.delay is UNSET:
        errors.append(FieldError("delay", 'is missing; onConflict "debounce" fires that long after the latest create'))
    if sent.max_delay is UNSET:
        reason = 'is missing; onConflict "debounce" fires at the latest that long after the first create'
        errors.append(FieldError("maxDelay", reason))
    else:
        errors += _bad_max_delay(sent, sent.max_delay, rules)
    if sent.collect is not UNSET:
        if sent.body is not UNSET:
            errors.append(FieldError("collect", "conflicts with body: only payloads are collected; send payload"))
        if sent.method is not UNSET and sent.method in BODILESS_METHODS:
            reason = f"conflicts with method {sent.method}, which sends no payload; use another method"
            errors.append(FieldError("collect", reason))
    return errors


def _bad_max_delay(sent: wire.CreateTimer, text: str, rules: InputRules) -> list[FieldError]:
    errors: list[FieldError] = []
    max_delay_us = read(parse_duration, "maxDelay", text, errors)
    if errors:
        return errors
    if reason := rules.delay(max_delay_us):
        return [FieldError("maxDelay", reason)]
    delay_us = 0 if sent.delay is UNSET else read(parse_duration, "delay", sent.delay, [])
    if max_delay_us < delay_us:
        return [FieldError("maxDelay", "is shorter than delay; make it at least as long")]
    return []


def debounced_answer(state: DebounceWindow | None) -> wire.Debounced | msgspec.UnsetType:
    """What clients see of the creates that the timer stands for."""
    if state is None:
        return UNSET
    first_at, latest_at = format_instant(state.first_at), format_instant(state.latest_at)
    return wire.Debounced(state.creates, first_at, latest_at, state.collected or UNSET)
