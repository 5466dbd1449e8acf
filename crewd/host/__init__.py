"""The host: the one process that starts, feeds, stops and spools all others.

Standard library only, no asyncio, and nothing of the rest of crewd: it must stay small, start fast
and outlive any daemon that talks to it.
"""
