"""Root leaves no files in a data folder of another user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tocsin.model.errors import ConfigError
from tocsin.server.stores import open_store
from tocsin.settings import load_settings


def test_root_is_refused_before_it_leaves_files_in_another_users_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() == 0:
        os.chown(tmp_path, 12_345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 0)
    settings = load_settings({"data_dir": tmp_path})
    for node in (True, False):
        with pytest.raises(ConfigError, match="belongs to the user"):
            open_store(settings, node=node)
    assert list(tmp_path.iterdir()) == []
    # A backup, or another command on data that exist, leaves nothing behind.
    (tmp_path / "tocsin.db").touch()
    open_store(settings, node=False)
