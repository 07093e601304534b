"""The rules that refuse a move: one gate a file under `guard.gates`, found by being there.

A gate looks at one candidate, the state, the history and what the growing plan has booked, and either says nothing or refuses with a
sentence that carries the numbers. Gates never act, never log, never read a clock.
"""
