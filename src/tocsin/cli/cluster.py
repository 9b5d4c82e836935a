"""`tocsin cluster`."""

from __future__ import annotations

from collections import Counter

from tocsin.cli import output
from tocsin.cli.options import LOCAL_SERVER, AsJson, Server


def cluster(server: Server = LOCAL_SERVER, as_json: AsJson = False) -> None:
    """Show the nodes and shards: owners, timers in the window, lag."""
    with server.client() as client:
        answer = client.get("/cluster")
    if as_json:
        output.print_json(answer)
        return
    nodes, shards = answer["nodes"], answer["shards"]
    output.print_table(
        ("node", "address", "state", "version", "shards", "window", "lag ms", "agent"),
        [
            (
                node["node"],
                node.get("address"),
                _state(node),
                *(_known(value) for value in (node.get("version"), node.get("shards"), node.get("windowTimers"))),
                _known(node.get("lagMs")),
                _known(node.get("agent")),
            )
            for node in nodes
        ],
    )
    if sizes := [node["largestShardBytes"] for node in nodes if node.get("largestShardBytes") is not None]:
        output.note(f"Largest shard: {max(sizes) / 2**20:,.0f} MiB")
    columns = list(dict.fromkeys(name for shard in shards for name in shard))
    output.print_table(columns, [[output.cell(shard.get(name)) for name in columns] for shard in shards])
    for name, number in Counter(node["node"] for node in nodes if node.get("sharesName")).items():
        output.note(
            f"Warning: {number} live nodes have the name {name}. Only one of them gets shards: "
            "set a unique node_name for each and restart it."
        )
    for name in [node["node"] for node in nodes if node.get("secretDiffers")]:
        output.note(
            f"Warning: {name} has another cluster.secret than nodes that started earlier, so it owns no shards: set "
            "theirs, or name the former one in cluster.secret_former while you replace it."
        )
    if answer.get("dispatching") is False:
        output.note(f"Dispatch paused: {answer.get('dispatchPausedReason') or 'no timer fires'}")


def _state(node: dict[str, object]) -> str:
    if not node.get("alive"):
        return "dead"
    if node.get("leaving"):
        return "leaving"
    if node.get("secretDiffers"):
        return "secret differs"
    if node.get("skewed"):
        return "clock off"
    return "paused" if node.get("dispatching") is False else "alive"


def _known(value: object) -> object:
    """The value, or `unknown` for what only an unreachable node knows."""
    return "unknown" if value is None else output.cell(value)
