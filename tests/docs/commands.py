"""Runs a page's `tocsin` in processes that are forked from one that has imported it: a page types up to thirty commands, and
importing takes nine tenths of the processor's time that one needs."""

from __future__ import annotations

import marshal
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from tests.support import preloaded

#: What is found as `tocsin` instead: it hands over its arguments, environment, folder and files, passes on signals, and ends
#: as the forked process does. Nothing but what the interpreter itself has is imported, or that would take as long.
_HANDS_OVER = """#!{python} -IS
import _signal, _socket, marshal, os, sys
ran = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
ran.connect({path!r})
files = b"".join(fd.to_bytes(4, sys.byteorder) for fd in range(3))
# What the shell gives as <(...) is a file of this process.
own = "/proc/%d/fd/" % os.getpid()
request = marshal.dumps(([each.replace("/dev/fd/", own) for each in sys.argv[1:]], dict(os.environ), os.getcwd()))
ran.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
pid = int(ran.recv(100) or 0)
if not pid:
    sys.exit("the process from which others are forked has ended")
# Also where they are ignored, as SIGINT is below a shell's background process: a server has handlers of its own.
for number in (_signal.SIGINT, _signal.SIGTERM):
    _signal.signal(number, lambda received, _: os.kill(pid, received))
code = int(ran.recv(100) or 1)
os._exit(code if code >= 0 else 128 - code)
"""


def preload(folder: Path) -> None:
    """In a mount namespace of its own, from now on the environment's `tocsin` is run by a process that is started here."""
    # Of effect in all programs of the page: their output comes when it is written.
    os.environ["PYTHONUNBUFFERED"] = "1"
    path, program = folder / "commands.socket", folder / "commands.py"
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(str(path))
    listening.listen(100)
    threading.Thread(target=_pass_on, args=(listening,), daemon=True).start()
    program.write_text(_HANDS_OVER.format(python=sys.executable, path=str(path)))
    program.chmod(0o755)
    subprocess.run(["mount", "--bind", program, Path(sys.executable).parent / "tocsin"], check=True)


def _pass_on(listening: socket.socket) -> None:
    while True:
        asker, _ = listening.accept()
        with asker:
            request, fds, _, _ = socket.recv_fds(asker, 2**20, 3)
            # Nothing comes from a program that was killed before it has asked.
            if request:
                arguments, env, folder = marshal.loads(request)
                preloaded.pass_on(arguments, env, folder, (*fds, asker.fileno()))
            for fd in fds:
                os.close(fd)
