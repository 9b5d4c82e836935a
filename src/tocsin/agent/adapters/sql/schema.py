"""The schema's versions: forward only, each step in a transaction, run in code."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from tocsin.agent.adapters.sql.tables import metadata
from tocsin.model.errors import SchemaTooNew, StoreCorrupted

_FOLDER = Path(__file__).parent / "migrations"


def newest() -> str:
    """The version that this Tocsin brings the schema to."""
    head = ScriptDirectory(str(_FOLDER)).get_current_head()
    assert head is not None
    return head


def version(connection: Connection) -> str | None:
    """The version that the database has, None for an empty one."""
    return MigrationContext.configure(connection).get_current_revision()


def migrate(connection: Connection, name: str, to: str = "head") -> None:
    """Brings the schema to a version, the newest unless another is named. Raises SchemaTooNew for a database that a newer
    Tocsin wrote, StoreCorrupted for one that has tables of ours and no version."""
    present = version(connection)
    connection.rollback()
    known = {script.revision for script in ScriptDirectory(str(_FOLDER)).walk_revisions()}
    if present is not None and present not in known:
        raise SchemaTooNew(
            f"{name} has schema {present}, this Tocsin knows up to {newest()}; run the newer Tocsin, or restore a backup"
        )
    if present is None and (foreign := set(inspect(connection).get_table_names()) & set(metadata.tables)):
        raise StoreCorrupted(
            f"{name} has tables named {', '.join(sorted(foreign))} that Tocsin did not make; choose another database"
        )
    connection.rollback()
    if present == (newest() if to == "head" else to):
        return
    sqlite = connection.dialect.name == "sqlite"
    if sqlite:
        # A table that is dropped after its copy must not take along what refers to it, and one that is renamed must keep
        # the references by its name. Both can be said only outside of transactions.
        _pragmas(connection, foreign_keys="OFF", legacy_alter_table="ON")
    try:
        if sqlite:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        _upgrade(connection, to)
        if sqlite and (broken := connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()):
            raise StoreCorrupted(f"{name}: the migration would leave {len(broken)} rows without their service call")
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    finally:
        if sqlite:
            _pragmas(connection, foreign_keys="ON", legacy_alter_table="OFF")


def _upgrade(connection: Connection, to: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, to)


def _pragmas(connection: Connection, **pragmas: str) -> None:
    for name, value in pragmas.items():
        connection.exec_driver_sql(f"PRAGMA {name} = {value}")
    connection.rollback()
