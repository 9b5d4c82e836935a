"""Columns and constraints of tables, for their definitions and for the migrations."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CheckConstraint, Column, ForeignKeyConstraint, Integer, PrimaryKeyConstraint
from sqlalchemy.types import TypeEngine

ColumnType = TypeEngine[Any] | type[TypeEngine[Any]]


def required(kind: ColumnType, *names: str) -> list[Column[Any]]:
    """NOT NULL columns of one type."""
    return [Column(name, kind, nullable=False) for name in names]


def optional(kind: ColumnType, *names: str) -> list[Column[Any]]:
    """Columns of one type."""
    return [Column(name, kind) for name in names]


def of_service_call(table: str) -> ForeignKeyConstraint:
    """Rows of the table belong to a service call and are deleted with it."""
    key = ["tenant_id", "service_call_id"]
    references = [f"service_calls.{name}" for name in key]
    return ForeignKeyConstraint(key, references, name=f"fk_{table}_service_call", ondelete="CASCADE")


def primary_key(table: str, *names: str) -> PrimaryKeyConstraint:
    """The primary key, named after the table."""
    return PrimaryKeyConstraint(*names, name=f"pk_{table}")


def only_row(table: str) -> list[Any]:
    """The column `id` of a table that has one row, and its constraints."""
    check = CheckConstraint("id = 1", name=f"ck_{table}_only_one")
    return [Column("id", Integer, nullable=False, autoincrement=False), primary_key(table, "id"), check]
