"""The programs of `docs/sdks/java.md` run as they are printed, with the jars that Maven built; only addresses differ."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port, wait_for_port
from tocsin_client.testing import TestServer

# Building takes a while on a slow machine.
pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[3]
JAVA = ROOT / "sdks/java"
PAGE = (ROOT / "docs/sdks/java.md").read_text()
PROGRAMS = dict(re.findall(r"^```java\n// (\S+\.java)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
POM = re.search(r"^```xml\n<!-- pom.xml -->\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
INSTALLED = re.search(r"^mvn .* -pl (\S+) -am install$", PAGE, re.MULTILINE)[1].split(",")
FIRST = re.search(r"^mvn (.*exec-maven-plugin.*)$", PAGE, re.MULTILINE)[1].split()
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
VERSION = "0.1.0"
JARS = {name: JAVA / name / f"target/{name}-{VERSION}.jar" for name in ("tocsin-client", "tocsin-servlet")}
JVM = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp")


@pytest.fixture(scope="module")
def jars(built):
    return JARS


@pytest.fixture(scope="module")
def server():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOCSIN_BIN", str(Path(sys.executable).parent / "tocsin"))
        with TestServer("--log-level", "warning") as running:
            yield running


@pytest.fixture(scope="module")
def port():
    """Where the page's receivers listen, instead of 9000."""
    return free_port()


@pytest.fixture(scope="module")
def sources(tmp_path_factory, server, port):
    """A project outside the checkout with all programs of the page."""
    folder = tmp_path_factory.mktemp("project")
    for name, text in PROGRAMS.items():
        text = text.replace("http://127.0.0.1:8080", server.url)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(re.sub(r"\b9000\b", str(port), text).replace("ofSeconds(5)", "ofMillis(10)"))
    return folder


@pytest.fixture(scope="module")
def classpath(sources, jars, tmp_path_factory):
    """All programs, compiled at once."""
    classes = tmp_path_factory.mktemp("classes")
    path = os.pathsep.join([str(classes), *map(str, jars.values()), f"{JAVA}/driver/target/lib/*"])
    command = ["javac", "-Xlint:all", "-Werror", "-cp", path, "-d", classes, *sources.rglob("*.java")]
    compiled = subprocess.run(command, capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, compiled.stdout + compiled.stderr
    return path


def run(folder, *command):
    environment = {**os.environ, "TOCSIN_BIN": str(Path(sys.executable).parent / "tocsin")}
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@contextlib.contextmanager
def serving(folder, port, *command):
    """The program as a server; yields the file with its output."""
    output = folder / "output"
    with output.open("w") as log:
        environment = {**os.environ, "TOCSIN_SECRET": SECRET}
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        try:
            wait_for_port(port, process)
            yield output
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def local_repository(folder):
    """A Maven repository with the jars as released, and with what this machine has fetched of others."""
    folder.mkdir()
    fetched = Path.home() / ".m2/repository"
    for group in fetched.iterdir():
        if group.name != "dev":
            (folder / group.name).symlink_to(group)
    for name, jar in {**JARS, "tocsin-parent": None}.items():
        to = folder / "dev/tocsin" / name / VERSION
        to.mkdir(parents=True)
        shutil.copy(JAVA / name / "pom.xml" if jar else JAVA / "pom.xml", to / f"{name}-{VERSION}.pom")
        if jar:
            shutil.copy(jar, to)
    return folder


def test_the_first_program_is_short():
    lines = PROGRAMS["src/main/java/FirstTimer.java"].splitlines()
    assert len([line for line in lines if line.strip(" })") and not line.startswith("import")]) < 10


def test_every_program_is_run():
    assert len(re.findall("^```java$", PAGE, re.MULTILINE)) == len(PROGRAMS)


def test_jars_have_sources_javadoc_and_no_dependencies(jars):
    for name, jar in jars.items():
        for kind, member in (("sources", ".java"), ("javadoc", ".html")):
            with zipfile.ZipFile(jar.with_name(f"{name}-{VERSION}-{kind}.jar")) as archive:
                assert any(each.endswith(member) for each in archive.namelist())
    needed = re.findall("<dependency>(.*?)</dependency>", (JAVA / "tocsin-client/pom.xml").read_text(), re.DOTALL)
    assert len(needed) == 1 and "<scope>provided</scope>" in needed[0] and "<optional>true</optional>" in needed[0]
    version = (JAVA / "tocsin-client/src/main/java/dev/tocsin/client/Version.java").read_text()
    assert list(JARS) == INSTALLED
    assert f'"{VERSION}"' in version and f"<version>{VERSION}</version>" in POM


def test_first_timer_with_maven_in_a_folder_of_its_own(tmp_path, sources, jars, server, port):
    name = "src/main/java/FirstTimer.java"
    (tmp_path / name).parent.mkdir(parents=True)
    shutil.copy(sources / name, tmp_path / name)
    (tmp_path / "pom.xml").write_text(POM)
    repository = local_repository(tmp_path / "repository")
    with serving(tmp_path, port, sys.executable, "-m", "tocsin", "echo", "--port", str(port)) as output:
        printed = run(tmp_path, "mvn", "-B", f"-Dmaven.repo.local={repository}", *FIRST)
        assert re.search(r"^.*tea pending 20\S+\ncompleted$", printed, re.MULTILINE), printed
        assert '{"cups":2}' in output.read_text()


@pytest.mark.parametrize("name", ["Remind", "RemindServlet"])
def test_receivers(tmp_path, classpath, server, port, name):
    with serving(tmp_path, port, *JVM, classpath, name) as output, server.client() as client:
        client.namespaces.create(name, secret=SECRET)
        hook = f"http://127.0.0.1:{port}/hooks/remind"
        client.timers.create(name, "a", hook, delay="1h", payload={"order": 17})
        server.advance("2h")
        assert client.timers.get(name, "a").status == "completed"
        assert "order 17 was due at" in output.read_text()
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(hook, b"{}", PATIENCE_S)


@pytest.mark.parametrize("name", ["Billing", "SpringBilling"])
def test_a_chain_that_bills_once_a_month(tmp_path, classpath, server, port, name):
    with serving(tmp_path, port, *JVM, classpath, name), server.client() as client:
        client.namespaces.create(name, secret=SECRET)
        hook = f"http://127.0.0.1:{port}/hooks/bill"
        timer = client.timers.create(name, "customer-3", hook, delay="1d", payload={"month": 1})
        server.advance("62d")
        then = client.timers.get(name, "customer-3")
        client.timers.delete(name, "customer-3")
        assert (then.status, then.payload) == ("pending", {"month": 4})
        assert (then.execute_at - timer.execute_at).days == 90
    with contextlib.closing(sqlite3.connect(tmp_path / "billing.db")) as database:
        assert database.execute("SELECT * FROM invoices").fetchall() == [("customer-3", n) for n in (1, 2, 3)]


def test_the_test(tmp_path, classpath):
    (junit,) = (JAVA / "driver/target/lib").glob("junit-platform-console-standalone-*.jar")
    shown = run(tmp_path, "java", "-jar", junit, "execute", "-cp", classpath.replace("/*", "/sqlite-jdbc-3.41.2.2.jar"),
                "--select-class", "BillingTest")  # fmt: skip
    assert "2 tests successful" in shown


def test_programs_without_a_receiver(tmp_path, classpath, server):
    with server.client() as client:
        client.namespaces.create("orders", secret=SECRET)
    assert run(tmp_path, *JVM, classpath, "Nightly").startswith("Every day at 03:00, Europe/Berlin")
    first, last = run(tmp_path, *JVM, classpath, "Manage").splitlines()
    assert first.startswith("order-17 20") and last.startswith("too late: ")
    assert run(tmp_path, *JVM, classpath, "Many").splitlines() == ["2500 created", "job-0"]
    assert run(tmp_path, *JVM, classpath, "Asynchronous") == "coffee pending\n"
    assert run(tmp_path, *JVM, classpath, "Charge") == "Scheduled\n"
