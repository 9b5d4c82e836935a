"""`tocsin migrate`."""

from __future__ import annotations

import typer

from tocsin.cli import output
from tocsin.cli.options import AsJson, ConfigFile, DataDir, Store


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("migrate", epilog="Example: tocsin migrate --data-dir /var/lib/tocsin")(migrate)


def migrate(config: ConfigFile = None, data_dir: DataDir = None, store: Store = None, as_json: AsJson = False) -> None:
    """Bring the store's schema to this version, creating it if needed. `serve` does so too; the server must not run."""
    import asyncio

    from tocsin.config import load_settings
    from tocsin.server.stores import newest_schema, open_store

    settings = load_settings({"config": config, "data_dir": data_dir, "store": store})
    opened = open_store(settings, memory=False)

    async def open_and_close() -> int:
        try:
            return await opened.open(settings.shards)
        finally:
            await opened.close()

    shards = asyncio.run(open_and_close())
    result = {"store": settings.store_url_redacted(), "schema": newest_schema(settings), "shards": shards}
    if as_json:
        output.print_json(result)
    else:
        output.print_fields(result)
