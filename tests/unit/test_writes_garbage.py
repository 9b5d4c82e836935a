"""What a client's write leaves behind: nothing that only the garbage collector can free, whose pauses grow with it."""

from __future__ import annotations

import gc

from tests.unit.test_forwarded_writes import Elsewhere, Node, node, timer

from tocsin.engine.rows import Op
from tocsin.model.errors import ShardMoved

__all__ = ["node"]


def ops_in_circles() -> int:
    """Operations that nothing holds but themselves."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        return sum(isinstance(each, Op) for each in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


async def test_an_answered_write_is_freed_at_once(node: Node) -> None:
    gc.collect()
    gc.disable()
    try:
        await node.service.create_many([timer(f"many-{number}") for number in range(50)])
        await node.service.create(timer("one"))
        await node.service.delete("default", "one")
        assert ops_in_circles() == 0
    finally:
        gc.enable()


async def test_so_is_one_that_was_forwarded(node: Node) -> None:
    elsewhere = Elsewhere()
    elsewhere.answer = ShardMoved("nobody")
    node.service.connect(elsewhere, elsewhere)  # type: ignore[arg-type]
    node.supervisor.shards[0].closed = True
    gc.collect()
    gc.disable()
    try:
        answers = await node.service.create_many([timer(f"many-{number}") for number in range(50)])
        assert all(isinstance(answer, ShardMoved) for answer in answers)
        assert ops_in_circles() == 0
    finally:
        gc.enable()
