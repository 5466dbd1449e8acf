"""CatalogService: the agents, teams, workflows and skills there are for a directory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from os.path import normpath
from pathlib import Path
from typing import Final, Protocol, TypeAlias, TypeVar

from google.protobuf.message import Message

from crewd.catalog import Catalog, Finder, Problem, distrust, is_trusted, load, root_of
from crewd.core.errors import CrewdError, Reason, Violation
from crewd.rpc import catalog_convert as convert
from crewd.rpc.calls import Context, Handler, required, unary
from crewd.rpc.pages import RESPONSE_BYTES, gather, place_of
from crewd.rpc.ports import Wiring
from crewd.rpc.wire import ITEMS_TAG, repeated
from crewd.store import Listed, Page
from crewd.v1 import catalog_pb2
from crewd.v1 import catalog_service_pb2 as pb

NAME: Final = "crewd.v1.CatalogService"
_PROBLEMS: Final = 1000
_FRAMING: Final = 8
_Listing: TypeAlias = (
    pb.ListAgentsRequest | pb.ListTeamsRequest | pb.ListWorkflowsRequest | pb.ListSkillsRequest
)
T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class CatalogService:
    def __init__(self, wiring: Wiring) -> None:
        self._config_dir = wiring.config_dir

    def handlers(self) -> dict[str, Handler]:
        return {
            "ListAgents": unary(self._list_agents, pb.ListAgentsRequest.FromString),
            "GetAgent": unary(self._get_agent, pb.GetAgentRequest.FromString),
            "ListTeams": unary(self._list_teams, pb.ListTeamsRequest.FromString),
            "GetTeam": unary(self._get_team, pb.GetTeamRequest.FromString),
            "ListWorkflows": unary(self._list_workflows, pb.ListWorkflowsRequest.FromString),
            "GetWorkflow": unary(self._get_workflow, pb.GetWorkflowRequest.FromString),
            "ListSkills": unary(self._list_skills, pb.ListSkillsRequest.FromString),
            "GetSkill": unary(self._get_skill, pb.GetSkillRequest.FromString),
            "ValidateCatalog": unary(self._validate, pb.ValidateCatalogRequest.FromString),
        }

    async def _list_agents(self, request: pb.ListAgentsRequest, _context: Context) -> bytes:
        return await self._list(request, lambda catalog: catalog.agents, convert.agent)

    async def _get_agent(self, request: pb.GetAgentRequest, _context: Context) -> bytes:
        found = (await self._finder(request)).agent(request.name, "name")
        return pb.GetAgentResponse(agent=convert.agent(found, brief=False)).SerializeToString()

    async def _list_teams(self, request: pb.ListTeamsRequest, _context: Context) -> bytes:
        return await self._list(request, lambda catalog: catalog.teams, convert.team)

    async def _get_team(self, request: pb.GetTeamRequest, _context: Context) -> bytes:
        found = (await self._finder(request)).team(request.name)
        return pb.GetTeamResponse(team=convert.team(found, brief=False)).SerializeToString()

    async def _list_workflows(self, request: pb.ListWorkflowsRequest, _context: Context) -> bytes:
        return await self._list(request, lambda catalog: catalog.workflows, convert.workflow)

    async def _get_workflow(self, request: pb.GetWorkflowRequest, _context: Context) -> bytes:
        found = (await self._finder(request)).workflow(request.name)
        message = convert.workflow(found, brief=False)
        return pb.GetWorkflowResponse(workflow=message).SerializeToString()

    async def _list_skills(self, request: pb.ListSkillsRequest, _context: Context) -> bytes:
        return await self._list(request, lambda catalog: catalog.skills, convert.skill)

    async def _get_skill(self, request: pb.GetSkillRequest, _context: Context) -> bytes:
        found = (await self._finder(request)).skill(request.name)
        return pb.GetSkillResponse(skill=convert.skill(found, brief=False)).SerializeToString()

    async def _validate(self, request: pb.ValidateCatalogRequest, _context: Context) -> bytes:
        root, found = await asyncio.to_thread(self._problems, request.cwd)
        problems = _fitting(map(convert.problem, found[:_PROBLEMS]))
        return pb.ValidateCatalogResponse(
            problems=problems,
            omitted=len(found) - len(problems),
            project_root="" if root is None else str(root),
        ).SerializeToString()

    async def _list(
        self, request: _Listing, items: Callable[[Catalog], Mapping[str, T]], encode: _Encode[T]
    ) -> bytes:
        place = place_of(request, request, ignoring=("page_size",))
        _, catalog = await asyncio.to_thread(self._load, request.cwd)
        known = items(catalog)
        names = sorted(known)

        async def fetch(page: Page) -> Listed[T]:
            after = str(page.after[0]) if page.after else ""
            rest = [name for name in names if name > after]
            shown = rest[: page.limit]
            more = (shown[-1],) if len(rest) > len(shown) else None
            return Listed(rows=[known[name] for name in shown], next=more, as_of_sequence=0)

        page = await gather(place, fetch, lambda item: encode(item, brief=True).SerializeToString())
        # The token has the same number in all lists.
        rest = pb.ListAgentsResponse(next_page_token=place.token(page.next))
        return repeated(ITEMS_TAG, page.items) + rest.SerializeToString()

    async def _finder(self, request: _Getting) -> Finder:
        required("name", request.name)
        _, catalog = await asyncio.to_thread(self._load, request.cwd)
        return Finder(catalog)

    def _problems(self, cwd: str) -> tuple[Path | None, list[Problem]]:
        root, catalog = self._load(cwd)
        problems = list(catalog.problems)
        if root is not None and not is_trusted(self._config_dir, root):
            problems += distrust.warnings(catalog, root)
        return root, sorted(problems, key=lambda problem: (problem.file, problem.line))

    def _load(self, cwd: str) -> tuple[Path | None, Catalog]:
        root = _root(cwd)
        return root, load(root, Path.home(), self._config_dir)


class _Encode(Protocol[T_contra]):
    def __call__(self, item: T_contra, /, *, brief: bool) -> Message: ...


class _Getting(Protocol):
    @property
    def cwd(self) -> str: ...
    @property
    def name(self) -> str: ...


def _fitting(problems: Iterable[catalog_pb2.CatalogProblem]) -> list[catalog_pb2.CatalogProblem]:
    """Return the first problems, as many as a response may have."""
    kept: list[catalog_pb2.CatalogProblem] = []
    room = RESPONSE_BYTES
    for problem in problems:
        room -= problem.ByteSize() + _FRAMING
        if room < 0:
            break
        kept.append(problem)
    return kept


def _root(cwd: str) -> Path | None:
    if not cwd:
        return None
    problem = ""
    if "\0" in cwd or not cwd.startswith("/"):
        problem = f"{cwd!r} is not absolute"
    elif not Path(cwd).is_dir():
        problem = f"{cwd!r} is no directory"
    if problem:
        raise CrewdError(
            Reason.CWD_INVALID, f"cwd: {problem}", violations=[Violation("cwd", problem)], cwd=cwd
        )
    return root_of(Path(normpath(cwd)))
