"""Carries a plan out: evict, annotate, taint, or only record. Each way of acting is an actuator behind one interface."""
