"""Schema migrations: forward only, each in a transaction, implemented in Python."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from tocsin.model.errors import SchemaTooNew, StoreCorrupted
from tocsin.stores.service_calls.tables import metadata

_FOLDER = Path(__file__).parent / "migrations"


def newest() -> str:
    """The schema version of this release."""
    head = ScriptDirectory(str(_FOLDER)).get_current_head()
    assert head is not None
    return head


def version(connection: Connection) -> str | None:
    """The schema version of the database, None if it is empty."""
    return MigrationContext.configure(connection).get_current_revision()


def migrate(connection: Connection, name: str, to: str = "head") -> None:
    """Migrates the schema to a version, by default the newest. Raises SchemaTooNew for a database that a newer release
    wrote, and StoreCorrupted for one that has tables of the same names but no version."""
    present = version(connection)
    connection.rollback()
    known = {script.revision for script in ScriptDirectory(str(_FOLDER)).walk_revisions()}
    if present is not None and present not in known:
        raise SchemaTooNew(
            f"{name} has schema {present}, this release supports up to {newest()}; run the newer release, or restore a backup"
        )
    if present is None and (foreign := set(inspect(connection).get_table_names()) & set(metadata.tables)):
        raise StoreCorrupted(
            f"{name} has tables named {', '.join(sorted(foreign))} that Tocsin did not create; choose another database"
        )
    connection.rollback()
    if present == (newest() if to == "head" else to):
        return
    sqlite = connection.dialect.name == "sqlite"
    if sqlite:
        # Dropping a table after copying it must not delete rows that refer to it, and renaming one must not change the
        # references to its name. Both pragmas work only outside of transactions.
        set_pragmas(connection, foreign_keys="OFF", legacy_alter_table="ON")
    try:
        if sqlite:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        _upgrade(connection, to)
        if sqlite and (broken := connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()):
            raise StoreCorrupted(f"{name}: the migration would leave {len(broken)} rows without a service call")
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    finally:
        if sqlite:
            set_pragmas(connection, foreign_keys="ON", legacy_alter_table="OFF")


def _upgrade(connection: Connection, to: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, to)


def set_pragmas(connection: Connection, **pragmas: str | int) -> None:
    """Sets pragmas of a SQLite connection, outside of any transaction."""
    for name, value in pragmas.items():
        connection.exec_driver_sql(f"PRAGMA {name} = {value}").close()
    connection.rollback()
