"""How to start another process, and how to talk to it."""
