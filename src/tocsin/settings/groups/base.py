"""What all groups of settings share."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel


class Group(BaseModel):
    """Settings that answer one question of an operator. `tocsin.settings.settings.Settings` inherits all groups.

    A setting is one annotated field with its default and its description. The description states what the setting
    controls, in which unit, and what higher and lower values do. A field such as `egress_allow` is the setting
    `egress.allow`, the key `allow` in the file's table `[egress]`, and the variable `TOCSIN_EGRESS_ALLOW`.
    """

    #: Heading on the reference page, in `tocsin config show` and in the example file.
    title: ClassVar[str]
    #: One sentence below the heading; it may link to other pages of the documentation.
    intro: ClassVar[str]
