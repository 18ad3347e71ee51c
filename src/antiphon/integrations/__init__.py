"""For users of other frameworks: their runners over our backends, and conversions under the names that they know.

A module that needs its framework is imported by its name.
"""
