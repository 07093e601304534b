"""Tests of the benchmarks: that they run and what they print, never how long anything takes."""
