"""`tocsin` for those who start it by its path, as SDKs and pages do: a program that hands over to a process that is forked
from one that has imported it."""

from __future__ import annotations

import atexit
import marshal
import os
import shutil
import socket
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path

from tests.support import preloaded

#: It hands over its arguments, environment, folder and files, passes on signals, and ends as the forked process does. Nothing
#: but what the interpreter itself has is imported, or that would take as long.
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
# Also where they are ignored, as SIGINT is below a shell's background process: a server has handlers of its own.
for number in (_signal.SIGINT, _signal.SIGTERM):
    _signal.signal(number, lambda received, _: os.kill(pid, received))
code = int(ran.recv(100) or 1)
os._exit(code if code >= 0 else 128 - code)
"""


@cache
def program() -> Path:
    """The program of this process."""
    folder = Path(tempfile.mkdtemp(prefix="tocsin-program-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return program_in(folder)


def program_in(folder: Path) -> Path:
    """A program in the folder, which works while this process lives. SIGKILL ends it, but not the forked process: that ends
    with this one at the latest."""
    path, written = folder / "program.socket", folder / "program"
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(str(path))
    listening.listen(100)
    threading.Thread(target=_pass_on, args=(listening,), daemon=True).start()
    written.write_text(_HANDS_OVER.format(python=sys.executable, path=str(path)))
    written.chmod(0o755)
    return written


def _pass_on(listening: socket.socket) -> None:
    while True:
        asker, _ = listening.accept()
        with asker:
            request, fds, _, _ = socket.recv_fds(asker, 2**20, 3)
            arguments, env, folder = marshal.loads(request)
            preloaded.pass_on(arguments, env, folder, (*fds, asker.fileno()))
            for fd in fds:
                os.close(fd)
