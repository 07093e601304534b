"""A small PromQL over columns: enough for the queries of this project and for signals that operators write themselves.

Every value is a matrix ``[series, step]`` with a mask of what is present, so that a range query costs one evaluation and 150,000 series
cost numpy, not Python. Labels are columns of codes into word lists; an absent label is the empty word, as in PromQL itself.

Left out on purpose, each answered with a 400 that names it: histograms, ``@``, ``count_values``, string results, and functions beyond
the usual ones. Ranges include both ends, as in Prometheus 2; version 3 leaves the older end out, which matters only to samples exactly
on it.
"""
