"""Agents, teams, workflows and skills: what there is in the files, and tasks made of it.

All steps of a workflow are in its file. Workflows whose steps are planned while they run, such as
upstream's `chain`, are not read, and neither are specs that steps are held to, as those of its
`strict-fast-fix`.
"""

from __future__ import annotations

from crewd.catalog.find import Finder
from crewd.catalog.load import CacheUse, cache_use, load, root_of
from crewd.catalog.plan import plan
from crewd.catalog.trust import is_trusted, trust
from crewd.catalog.values import (
    Agent,
    Catalog,
    NamedTask,
    Plan,
    PlanRequest,
    Problem,
    Role,
    RoleChange,
    Severity,
    Skill,
    Source,
    Step,
    Team,
    Untrusted,
    Workflow,
)

__all__ = [
    "Agent",
    "CacheUse",
    "Catalog",
    "Finder",
    "NamedTask",
    "Plan",
    "PlanRequest",
    "Problem",
    "Role",
    "RoleChange",
    "Severity",
    "Skill",
    "Source",
    "Step",
    "Team",
    "Untrusted",
    "Workflow",
    "cache_use",
    "is_trusted",
    "load",
    "plan",
    "root_of",
    "trust",
]
