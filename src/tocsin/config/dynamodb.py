"""The settings of the store in DynamoDB: the file's table `dynamodb`."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from pydantic_settings import BaseSettings

from tocsin.config.values import Count, Duration
from tocsin.model.instants import US_PER_SECOND


class DynamodbFields(BaseSettings):
    """A part of `Settings`."""

    dynamodb_request_timeout: Duration = Field(
        3 * US_PER_SECOND,
        description="DynamoDB: how long the answer to one request is waited for. Lowered: a request that got lost is sent "
        "again sooner. Keep it, with `dynamodb.patience`, below `store_timeout`.",
    )
    dynamodb_connect_timeout: Duration = Field(
        2 * US_PER_SECOND, description="DynamoDB: how long making a connection may take."
    )
    dynamodb_patience: Duration = Field(
        8 * US_PER_SECOND,
        description="DynamoDB: how long a request that is throttled, in conflict or unanswered is sent again before the "
        "commit or read fails. Raised: short throttling is bridged; clients wait longer.",
    )
    dynamodb_connections_max: Count = Field(
        50, description="DynamoDB: connections of a node. Raised: more shards commit and load at once."
    )
    dynamodb_parallel_max: Count = Field(
        16,
        description="DynamoDB: requests that one list, or one read of several timers, has under way at once. Raised: faster "
        "lists, which leave fewer connections to others.",
    )
    dynamodb_create_timeout: Duration = Field(
        120 * US_PER_SECOND, description="DynamoDB: how long the first start waits for the table that it makes."
    )


def dynamodb_options(settings: DynamodbFields) -> dict[str, Any]:
    """Keyword arguments of DynamoStore, but for those that aren't of this table."""
    return {
        "request_timeout_s": settings.dynamodb_request_timeout / US_PER_SECOND,
        "connect_timeout_s": settings.dynamodb_connect_timeout / US_PER_SECOND,
        "patience_s": settings.dynamodb_patience / US_PER_SECOND,
        "connections_max": settings.dynamodb_connections_max,
        "parallel_max": settings.dynamodb_parallel_max,
        "create_timeout_s": settings.dynamodb_create_timeout / US_PER_SECOND,
    }
