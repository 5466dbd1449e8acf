"""The store: a log that makes what happened durable, and reads of what it holds."""

from crewd.store.artifacts import ArtifactFiles
from crewd.store.db import NewerDatabaseError
from crewd.store.entries import AppendFailed, Batch, Entry, Request
from crewd.store.history import EventPage, EventQuery
from crewd.store.listing import ArtifactFilter, AskFilter, Cursor, Listed, Page, RunFilter
from crewd.store.loading import Counts, LoadedRun
from crewd.store.log import Log
from crewd.store.reads import Reads

__all__ = [
    "AppendFailed",
    "ArtifactFiles",
    "ArtifactFilter",
    "AskFilter",
    "Batch",
    "Counts",
    "Cursor",
    "Entry",
    "EventPage",
    "EventQuery",
    "Listed",
    "LoadedRun",
    "Log",
    "NewerDatabaseError",
    "Page",
    "Reads",
    "Request",
    "RunFilter",
]
