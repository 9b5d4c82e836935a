"""Numbers in the addresses of pages."""

from __future__ import annotations

import pytest

from tests.integration.pages.conftest import Start


@pytest.mark.asyncio
@pytest.mark.parametrize("digits", ["9" * 5_000, "0" * 5_000])
async def test_number_with_thousands_of_digits_is_accepted(start: Start, digits: str) -> None:
    browser = (await start()).browser()
    for path in ("/timers", "/ui/more/timers", "/calls"):
        answer = await browser.get(f"{path}?rows={digits}&order=asc")
        assert answer.status_code == 200, answer.text[:200]
