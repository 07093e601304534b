"""How long the project takes and how much memory: measured by programs that are run by hand, never judged by a test."""
