"""The long table of faults runs by `make faults`; what is quick of this folder runs with every other test."""

from __future__ import annotations

import os

collect_ignore = [] if os.environ.get("REBALANCER_TEST_FAULTS") else ["test_table.py"]
