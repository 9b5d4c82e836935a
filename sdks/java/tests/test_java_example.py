"""The order service of `examples/orders/java`, with the classes of this checkout."""

from __future__ import annotations

import os
import re

import pytest
from tests.support.orders import EXAMPLES, check_readme, run

# Building takes a while on a slow machine.
pytestmark = pytest.mark.timeout(300)

EXAMPLE = EXAMPLES / "java"
_JVM = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@pytest.fixture(scope="module")
def classpath(built, tmp_path_factory):
    """The service and its test, compiled, with the libraries that the SDK's own tests use."""
    classes = tmp_path_factory.mktemp("classes")
    sdk, (sqlite,), (junit,) = (
        built / "tocsin-client/target/classes",
        (built / "driver/target/lib").glob("sqlite-jdbc-*.jar"),
        (built / "driver/target/lib").glob("junit-platform-console-standalone-*.jar"),
    )
    path = os.pathsep.join(map(str, (classes, sdk, sqlite, junit)))
    sources = (EXAMPLE / "src/main/java/Orders.java", EXAMPLE / "src/test/java/OrdersTest.java")
    run(classes, "javac", "-Xlint:all", "-Werror", "-cp", path, "-d", classes, *sources)
    return path


def test_asks_for_what_it_is_tested_with(built):
    declared = dict(
        re.findall(r"<artifactId>(.*)</artifactId>\s*<version>(.*)</version>", (EXAMPLE / "pom.xml").read_text())
    )
    assert (built / f"tocsin-client/target/tocsin-client-{declared['tocsin-client']}.jar").exists()
    libraries = built / "driver/target/lib"
    assert (libraries / f"sqlite-jdbc-{declared['sqlite-jdbc']}.jar").exists()
    # Version 5 of Jupiter is version 1 of its platform.
    assert (libraries / f"junit-platform-console-standalone-1{declared['junit-jupiter'][1:]}.jar").exists()


def test_its_test(tmp_path, classpath):
    command = ("org.junit.platform.console.ConsoleLauncher", "execute", "--select-class", "OrdersTest")
    assert "3 tests successful" in run(tmp_path, *_JVM, "-cp", classpath, *command)


def test_readme(tmp_path, classpath):
    check_readme("java", tmp_path, "mvn --quiet compile exec:java", instead=f"{' '.join(_JVM)} -cp {classpath} Orders")
