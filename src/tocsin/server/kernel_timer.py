"""A wake-up by a timer of the kernel (timerfd), exact to some microseconds, where event loops count in milliseconds. Python
has functions for it from 3.13 on."""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import time
from collections.abc import Callable

from tocsin.ports.clock import WakeUp
from tocsin.timers.engine.alarm import LoopWakeUp

#: `struct itimerspec`: interval and value, each in seconds and nanoseconds. An interval of zero: it expires once.
_Spec = ctypes.c_long * 4


def wake_up(wake: Callable[[], None]) -> WakeUp:
    """A wake-up by the kernel, or by the event loop where the kernel has none."""
    try:
        return KernelTimer(wake)
    except OSError:
        return LoopWakeUp(wake)


class KernelTimer:
    """Implements `tocsin.ports.clock.WakeUp` for the running event loop. Raises OSError where there is no such timer."""

    def __init__(self, wake: Callable[[], None]) -> None:
        if sys.platform != "linux":
            raise OSError("timerfd needs Linux")
        # Unlike those of CDLL, the calls keep the interpreter lock, which another thread could hold for milliseconds.
        kernel = ctypes.PyDLL(None, use_errno=True)
        # Its flags are those of files.
        self._descriptor = kernel.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._set_time = kernel.timerfd_settime
        self._spec = _Spec()
        self._wake = wake
        self._is_set = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._descriptor, self._on_expiry)

    def set(self, delay_us: int) -> None:
        """Wakes after the delay."""
        self._is_set = True
        # Zero would mean never.
        self._arm(delay_us * 1_000 or 1)

    def close(self) -> None:
        """Cancels the wake-up that is set, and closes the timer."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _arm(self, delay_ns: int) -> None:
        self._spec[2], self._spec[3] = divmod(delay_ns, 1_000_000_000)
        if self._descriptor >= 0 and self._set_time(self._descriptor, 0, self._spec, None) < 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def _on_expiry(self) -> None:
        self._is_set = False
        try:
            self._wake()
        finally:
            if not self._is_set:
                # Like each new setting, this makes the descriptor unreadable, so that it need not be read.
                self._arm(0)
