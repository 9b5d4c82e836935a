"""The scope of a key: tenants and namespaces."""

from __future__ import annotations

from tests.support.cases import each

from tocsin.model.access import ApiKey, Role

TENANT = "01890a5d-ac96-774b-bcce-b302099a8057"


def key(role: Role = Role.WRITE, namespaces: tuple[str, ...] = (), tenants: tuple[str, ...] = ()) -> ApiKey:
    return ApiKey("k", "h", role, namespaces, tenants)


@each(
    "namespaces, tenants, tenant, namespace, service",
    [
        ((), (), True, True, True),
        ((), (TENANT,), True, False, False),
        ((), (TENANT.upper(),), True, False, False),
        ((), ("other",), False, False, False),
        (("default",), (), False, True, False),
        (("other",), (), False, False, False),
        (("default",), (TENANT,), True, True, False),
    ],
)
def test_limits(
    namespaces: tuple[str, ...], tenants: tuple[str, ...], tenant: bool, namespace: bool, service: bool
) -> None:
    limited = key(namespaces=namespaces, tenants=tenants)
    assert limited.allows_tenant(Role.WRITE, TENANT) is tenant
    assert limited.allows_tenant(Role.READ, TENANT.upper()) is tenant
    assert limited.allows(Role.WRITE, "default") is namespace
    assert limited.allows(Role.WRITE, None) is service


def test_the_role_is_checked_first() -> None:
    assert not key(Role.READ).allows_tenant(Role.WRITE, TENANT)
    assert key(Role.READ).allows_tenant(Role.READ, TENANT)
    assert key(Role.ADMIN, tenants=(TENANT,)).allows_tenant(Role.WRITE, TENANT)
