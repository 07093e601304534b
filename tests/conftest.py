"""What holds for all tests: none of them asserts how long something takes, not even by way of a library's default."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
