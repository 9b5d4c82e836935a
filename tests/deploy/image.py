"""Builds the image and runs it: `python -m tests.deploy.image`, or `make test-image`.

It needs root, buildah and podman, and no daemon or registry: the base is a Debian that mmdebstrap makes, and all images are
kept in `build/image`. It exits with 1, naming what is wrong, if the container doesn't do what docs/how-to/deploy.md promises.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
import time

from tests.deploy.files import DOCKERFILE, ROOT

FOLDER = ROOT / "build" / "image"
BASE, IMAGE = "localhost/tocsin-base:bookworm", "localhost/tocsin:tested"
PACKAGES = "python3,python3-venv,ca-certificates"
#: Of the layers that are ours. Measured: 172 MiB, of which 23 are asyncmy's; 29 were SQLAlchemy's, which has left.
SIZE_MAX_MIB = 200
#: Clients of DynamoDB, and of what gives credentials for it.
AMAZON = """
from botocore.session import get_session
for name in ('dynamodb', 'sts', 'sso', 'sso-oidc'):
    get_session().create_client(name, 'eu-west-1')
"""
#: A container needs seconds; a machine with other work may take much longer.
PATIENCE_S = 60.0
STORAGE = ["--root", str(FOLDER / "storage"), "--runroot", str(FOLDER / "run"), "--storage-driver", "vfs"]


def run(*command: str, check: bool = True, log: bool = False) -> str:
    """The standard output of a command; with `log` that goes to this program's standard error."""
    done = subprocess.run(
        command,
        check=False,
        text=True,
        stdout=sys.stderr if log else subprocess.PIPE,
        stderr=None if log else subprocess.PIPE,
        env={**os.environ, "BUILDAH_ISOLATION": "chroot"},
        cwd=ROOT,
    )
    if check and done.returncode:
        raise SystemExit(f"{' '.join(command)} failed with {done.returncode}: {done.stdout or ''}{done.stderr or ''}")
    return (done.stdout or "").strip()


def buildah(*arguments: str, log: bool = False) -> str:
    return run("buildah", *STORAGE, *arguments, log=log)


def podman(*arguments: str, check: bool = True) -> str:
    return run("podman", *STORAGE, "--cgroup-manager=cgroupfs", "--runtime=runc", *arguments, check=check)


def make_base() -> None:
    """An image of Debian with Python, with this machine's CA certificates."""
    root = FOLDER / "root.tar"
    if not root.exists():
        part = root.with_suffix(".part.tar")
        run("mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(part), log=True)
        part.rename(root)
    container = buildah("from", "scratch")
    buildah("add", "--quiet", container, str(root), "/")
    bundle = "/etc/ssl/certs/ca-certificates.crt"
    (FOLDER / "pip.conf").write_text(f"[global]\ncert = {bundle}\n")
    buildah("copy", "--quiet", container, bundle, bundle)
    buildah("copy", "--quiet", container, str(FOLDER / "pip.conf"), "/etc/pip.conf")
    buildah("commit", "--quiet", "--rm", container, BASE)


def build(base: str) -> None:
    """The image. The format is Docker's, because the other one has no health check."""
    arguments = ["--format", "docker", "--network", "host", "--build-arg", f"BASE={base}", "--file", str(DOCKERFILE)]
    buildah("bud", *arguments, "--tag", IMAGE, ".", log=True)


class Container:
    """The image, run as compose.yaml and the chart do: read-only but for /data and /tmp, without capabilities."""

    def __init__(self) -> None:
        secret = FOLDER / "secrets"
        shutil.rmtree(secret, ignore_errors=True)
        secret.mkdir(mode=0o711)
        (secret / "admin_key").write_text(secrets.token_hex(32))
        (secret / "admin_key").chmod(0o400)
        os.chown(secret / "admin_key", 10001, 10001)
        self.name = podman(
            "run", "--detach", "--read-only", "--read-only-tmpfs=false", "--tmpfs", "/tmp", "--cap-drop=all",
            "--security-opt=no-new-privileges", "--network=none", "--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096",
            "--volume", f"{secret}:/run/secrets:ro", "--env", "TOCSIN_ADMIN_KEY_FILE=/run/secrets/admin_key", IMAGE,
        )  # fmt: skip

    def shell(self, script: str) -> str:
        """What a script in the container prints, errors too."""
        return podman("exec", self.name, "sh", "-c", f"({script}) 2>&1", check=False)

    def healthy(self) -> bool:
        """Whether the image's own health check passes."""
        check = subprocess.run(
            ["podman", *STORAGE, "--cgroup-manager=cgroupfs", "--runtime=runc", "healthcheck", "run", self.name],
            capture_output=True,
            check=False,
        )
        return check.returncode == 0

    def end(self) -> int:
        """Sends SIGTERM; the exit code."""
        podman("stop", "--time=80", self.name)
        return int(podman("inspect", self.name, "--format", "{{.State.ExitCode}}"))


def check(container: Container) -> list[str]:
    """What is wrong."""
    wrong = []

    def expect(what: str, *, holds: bool, shown: object) -> None:
        print(f"{'ok' if holds else 'WRONG'}: {what} ({shown})", flush=True)
        if not holds:
            wrong.append(what)

    begun = time.monotonic()
    while not container.healthy():
        if time.monotonic() - begun > PATIENCE_S:
            return [f"it does not get healthy: {podman('logs', container.name)}"]
        time.sleep(0.2)
    expect("the health check passes", holds=True, shown=f"after {time.monotonic() - begun:.1f} s")
    user = container.shell("id -u; id -g; stat -c %u /proc/1")
    expect("it runs as 10001", holds=set(user.split()) == {"10001"}, shown=user.split())
    for path in ("/", "/opt/tocsin", "/etc", "/run/secrets"):
        answer = container.shell(f"touch {path}/written && echo written")
        expect(f"{path} can't be written", holds="written" not in answer.splitlines(), shown=answer.splitlines()[-1])
    expect("the databases are the user's alone", holds="-rw-------" in container.shell("ls -l /data/tocsin.db"),
           shown=container.shell("ls -l /data/tocsin.db"))  # fmt: skip
    version = json.loads(container.shell("tocsin version --json"))
    expect("it knows its version", holds=bool(version["tocsin"]), shown=version)
    keys = container.shell("tocsin keys list --json")
    expect("the first admin key was created", holds='"admin"' in keys, shown=keys[:120])
    refused = container.shell("TOCSIN_KEY= tocsin cluster; echo $?").splitlines()[-1]
    admitted = container.shell("TOCSIN_KEY=$(cat /run/secrets/admin_key) tocsin cluster > /dev/null; echo $?")
    expect("it requires the key", holds=(refused, admitted) == ("1", "0"), shown=(refused, admitted))
    size = int(container.shell("du -sm /opt/tocsin").split()[0])
    expect(f"it takes at most {SIZE_MAX_MIB} MiB beside the base", holds=size <= SIZE_MAX_MIB, shown=f"{size} MiB")
    for leftover in ("pip", "setuptools"):
        found = container.shell(f"find /opt/tocsin -maxdepth 5 -iname '{leftover}-*'")
        expect(f"{leftover} is gone", holds=not found, shown=found or "nothing found")
    amazon = container.shell(f'/opt/tocsin/bin/python -c "{AMAZON}" && echo made')
    expect("clients of Amazon's services can be made", holds=amazon == "made", shown=amazon[-200:])
    begun = time.monotonic()
    ended = container.end()
    expect("SIGTERM ends it with 0", holds=ended == 0, shown=f"{ended} after {time.monotonic() - begun:.1f} s")
    return wrong


def main() -> int:
    """Builds, runs, checks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", help="an image to build on, instead of mmdebstrap's Debian")
    given = parser.parse_args()
    lacking = [name for name in ("buildah", "podman", "runc", "mmdebstrap") if shutil.which(name) is None]
    if lacking or os.geteuid():
        print(f"Requires root, and Debian's packages {', '.join(lacking) or 'buildah, podman, runc and mmdebstrap'}.")
        return 1
    if not list((ROOT / "dist").glob("tocsin-*.whl")):
        print("There is no wheel in dist: run `make wheel`.")
        return 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    if given.base is None:
        make_base()
    build(given.base or BASE)
    container = Container()
    try:
        wrong = check(container)
    finally:
        podman("rm", "--force", "--volumes", container.name, check=False)
    print("\n".join(["", "What is wrong:", *wrong] if wrong else ["", "The image does what it promises."]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
