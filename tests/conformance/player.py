"""Carries scenarios out with the Python client, used as its users use it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from crewd_client import Client, CrewdError, locate
from crewd_client.json import JsonError, from_json, to_json
from tests.conformance import calls
from tests.conformance.files import Step
from tests.conformance.matching import difference
from tests.conformance.scenarios import Scenario, filled
from tests.conformance.stage_process import StageProcess
from tests.conformance.watching import Watch

# JSON as it comes, to be compared.
Json = Any
SECONDS = 60
_SHOWN = 3
_FAILURES = (CrewdError, JsonError, locate.LocateError)


async def play(scenario: Scenario, stage: StageProcess) -> None:
    player = _Player(stage)
    where = "begin"
    try:
        async with asyncio.timeout(SECONDS):
            await player.act({"stage": "begin"})
            for number, step in enumerate(scenario.steps, 1):
                where = f"step {number}, {_brief(step)}"
                await player.act(step)
    except AssertionError as error:
        raise AssertionError(f"{where}: {error}") from None
    except TimeoutError:
        message = f"{where}: not after {SECONDS} s. {player.heard()}"
        raise AssertionError(message) from None
    finally:
        await player.leave()
        await player.act({"stage": "end"})


class _Player:
    """What one scenario has: variables, an environment, clients and watches."""

    def __init__(self, stage: StageProcess) -> None:
        self._stage = stage
        self._variables: dict[str, object] = {}
        self._env: dict[str, str] = {}
        self._clients: dict[str, Client] = {}
        self._watches: dict[str, Watch] = {}

    async def act(self, written: Step) -> None:
        """Do one step, and compare what comes of it with what is expected."""
        save: dict[str, str] = written.get("save", {})
        step: Any = filled({k: v for k, v in written.items() if k != "save"}, self._variables)
        if "stage" in step:
            await self._on_stage(step)
            return
        try:
            got = await self._do(step)
        except _FAILURES as error:
            told = _told(error)
            assert "error" in step, f"it failed: {told}"
            _compare(step["error"], told)
            return
        assert "error" not in step, f"it should have failed, but gave {got}"
        if "expect" in step and "await" not in step:
            _compare(step["expect"], got)
        self._variables |= {name: _at(got, path) for name, path in save.items()}

    def heard(self) -> str:
        """Tell what the watches gave, for a scenario that waits in vain."""
        heard = {name: watch.items[-_SHOWN:] for name, watch in self._watches.items()}
        return f"heard of late: {heard}" if heard else ""

    async def leave(self) -> None:
        for watch in self._watches.values():
            await watch.close()
        for client in self._clients.values():
            await client.close()

    async def _on_stage(self, step: Step) -> None:
        # In a thread, so that watches are read meanwhile.
        reply = await asyncio.to_thread(self._stage.do, step)
        self._variables |= reply.get("vars", {})
        self._env = reply.get("env", self._env)

    async def _do(self, step: Step) -> Json:
        (verb,) = step.keys() & _STEPS.keys()
        return await _STEPS[verb](self, step[verb], step)

    async def value(self, value: Json, _step: Step) -> Json:
        return value

    async def json(self, message: str, step: Step) -> Json:
        return to_json(from_json(step["input"], calls.message_class(message)))

    async def locate(self, named: dict[str, str], step: Step) -> Json:
        found = locate.find(self._changed_env(step), **named)
        return {
            "state_dir": str(found.state_dir),
            "socket": str(found.socket),
            "token": found.token,
            "task_token": found.task_token,
        }

    async def connect(self, named: dict[str, str], step: Step) -> None:
        client = await Client.connect(env=self._changed_env(step), **named)
        self._clients[step.get("as", "client")] = client

    async def call(self, method: str, step: Step) -> Json:
        unknown = step.get("unknown_field", False)
        request = calls.request_of(method, step.get("request", {}), unknown_field=unknown)
        return await calls.call(self._client(step), method, request, step.get("timeout"))

    async def stream(self, method: str, step: Step) -> Json:
        request = calls.request_of(method, step.get("request", {}))
        return await calls.stream(self._client(step), method, request)

    async def pages(self, method: str, step: Step) -> Json:
        request = calls.request_of(method, step.get("request", {}))
        return await calls.pages(self._client(step), method, request)

    async def watch_run(self, name: str, step: Step) -> None:
        self._watches[name] = calls.watch_run(self._client(step), step["request"])

    async def watch_runs(self, name: str, step: Step) -> None:
        self._watches[name] = calls.watch_runs(self._client(step), step["request"])

    async def watch_asks(self, name: str, step: Step) -> None:
        self._watches[name] = calls.watch_asks(self._client(step), step["request"])

    async def wait(self, name: str, step: Step) -> Json:
        wanted = step.get("expect", {})
        return await self._watches[name].until(lambda item: not difference(wanted, item))

    async def end(self, name: str, _step: Step) -> Json:
        return await self._watches[name].end()

    async def close(self, name: str, _step: Step) -> None:
        if name in self._watches:
            await self._watches.pop(name).close()
        else:
            await self._clients.pop(name).close()

    def _client(self, step: Step) -> Client:
        return self._clients[step.get("client", "client")]

    def _changed_env(self, step: Step) -> dict[str, str]:
        env = {**self._env, **step.get("env", {})}
        return {name: value for name, value in env.items() if name not in step.get("unset", [])}


_STEPS: dict[str, Callable[[_Player, Json, Step], Awaitable[Json]]] = {
    "value": _Player.value,
    "json": _Player.json,
    "locate": _Player.locate,
    "connect": _Player.connect,
    "call": _Player.call,
    "stream": _Player.stream,
    "pages": _Player.pages,
    "watch_run": _Player.watch_run,
    "watch_runs": _Player.watch_runs,
    "watch_asks": _Player.watch_asks,
    "await": _Player.wait,
    "ended": _Player.end,
    "close": _Player.close,
}


def _compare(expected: Json, got: Json) -> None:
    found = difference(expected, got)
    assert found is None, found


def _told(error: Exception) -> Json:
    """Give an error as scenarios describe it."""
    if isinstance(error, JsonError):
        return _plain(grpc.StatusCode.INVALID_ARGUMENT, error)
    if not isinstance(error, CrewdError):
        return _plain(grpc.StatusCode.UNAVAILABLE, error)
    told: Json = _plain(error.code, error) | {
        "reason": error.reason,
        "message": error.message,
        "metadata": error.metadata,
        "violations": [
            {"field": each.field, "description": each.description} for each in error.violations
        ],
    }
    if error.retry_after is not None:
        told["retry_after"] = f"{error.retry_after.total_seconds():g}s"
    if error.ask is not None:
        told["ask"] = to_json(error.ask)
    return told


def _plain(code: grpc.StatusCode, error: Exception) -> Json:
    said: Json = {"reason": "", "message": str(error), "metadata": {}, "violations": []}
    return {"code": code.name, **said}


def _at(got: Json, path: str) -> object:
    for part in filter(None, path.split(".")):
        got = got[int(part) if part.isdecimal() else part]
    return got


def _brief(step: Step) -> str:
    (verb,) = step.keys() & {"stage", *_STEPS}
    return f"{verb} {step[verb]!r}"
