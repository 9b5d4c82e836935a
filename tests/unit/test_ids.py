"""Identity and placement, compared with the standard library and with the test vectors that every SDK uses."""

from __future__ import annotations

import hashlib
import json
import uuid
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each

from tocsin.model import ids

_FILE = Path(__file__).parents[2] / "sdks/vectors/placement.json"
VECTORS: list[dict[str, Any]] = json.loads(_FILE.read_text())["cases"]
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=80)


def test_the_name_space_never_changes() -> None:
    assert str(ids.TOCSIN_NAMESPACE) == "a518515d-879f-5424-88af-63be957223ec"


@given(TEXT, TEXT)
def test_timer_uuid_equals_the_standard_librarys_uuid5(namespace: str, timer_id: str) -> None:
    expected = uuid.uuid5(ids.TOCSIN_NAMESPACE, f"{namespace}\0{timer_id}")
    assert ids.timer_uuid(namespace, timer_id) == expected.bytes


@given(TEXT)
def test_arc_begins_at_the_first_four_bytes_of_sha1(namespace: str) -> None:
    assert ids.namespace_hash(namespace) == int(hashlib.sha1(namespace.encode()).hexdigest()[:8], 16)


@given(TEXT, TEXT, st.integers(1, 300), st.integers(1, 200))
def test_timers_shard_is_one_of_its_namespaces_shards(namespace: str, timer_id: str, num: int, total: int) -> None:
    arc = ids.namespace_hash(namespace)
    shards = ids.shards_of_namespace(arc, num, total)
    assert ids.shard_of(arc, ids.timer_uuid(namespace, timer_id), num, total) in shards
    assert len(set(shards)) == len(shards) == min(num, total)
    assert all(0 <= shard < total for shard in shards)


@each("case", VECTORS)
def test_vectors(case: dict[str, Any]) -> None:
    given, expected = case["with"], case["expect"]
    identity = ids.timer_uuid(given["namespace"], given["id"])
    arc = ids.namespace_hash(given["namespace"])
    assert str(uuid.UUID(bytes=identity)) == expected["timerUuid"]
    assert ids.shard_of(arc, identity, given["numShards"], given["totalShards"]) == expected["shardId"]
