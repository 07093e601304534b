"""The division that stands in for `//` where it is asked for every node."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from rebalancer.plan.scores_resources import whole_quotient


@given(of=st.integers(1, 2**46), share=st.integers(0, 100), short=st.integers(0, 2))
@example(of=2**46 - 1, share=99, short=1)
def test_a_whole_quotient_is_what_integers_give(of: int, share: int, short: int) -> None:
    """Exact shares, and one or two bytes less than one, are where a rounded quotient would be one too many."""
    part = max(0, of * share - short)
    assert whole_quotient(np.array([float(part)]), np.array([float(of)])).tolist() == [part // of]
