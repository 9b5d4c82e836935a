"""Namespaces of a process's own: of the network, of mounts and of processes."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

# Of Linux's <sched.h> and <sys/prctl.h>. Python has `os.unshare` since 3.12.
_CLONE_NEWNS = 0x20000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1


def enter_namespaces() -> None:
    """Returns in a forked process, the first of new namespaces, as root. All others there end with it. The calling process
    waits for it, and raises SystemExit with its exit code."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    flags = _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWNET
    if libc.unshare(flags if user == 0 else flags | _CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "there are no namespaces for the page")
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    if child := os.fork():
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # No mount shows outside.
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
