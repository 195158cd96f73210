"""The pure rules: no I/O, no clock, no environment, no printing."""
