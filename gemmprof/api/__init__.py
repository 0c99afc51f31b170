"""The library as users call it: ``gemmprof.open``, ``gemmprof.profile`` and what they return.

This is a front door like the commands: it imports every room, and no room imports it.
"""
