"""From state and policy to findings: which nodes are hot, cold, normal or unknown, and where requests and usage disagree.

Pure: no clock, no input, no output. A finding carries the numbers it was made from, so that a report needs nothing else.
"""
