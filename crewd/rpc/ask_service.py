"""AskService: the questions that wait for a person, and their answers."""

from __future__ import annotations

from functools import partial
from typing import Final

from crewd.core.errors import CrewdError, Reason
from crewd.core.model import Answer, Ask
from crewd.core.state import RunState
from crewd.core.stimuli import AnswerAsk
from crewd.core.words import AskStatus
from crewd.rpc import convert
from crewd.rpc.calls import (
    NOTE_BYTES,
    TEXT_BYTES,
    Context,
    Handler,
    actor_of,
    answered_before,
    bounded,
    request_key,
    required,
    stream,
    unary,
)
from crewd.rpc.errors import AskSettledError, ask_not_found, invalid
from crewd.rpc.filters import ask_filter, matches_ask
from crewd.rpc.pages import gather, place_of
from crewd.rpc.ports import Wiring
from crewd.rpc.state_streams import Resource, StateStream
from crewd.rpc.wire import ITEMS_TAG, cut, repeated
from crewd.v1 import ask_service_pb2 as pb

NAME: Final = "crewd.v1.AskService"
_SHOWN_BYTES: Final = 200
"""Of an answer, in the message that tells who came second."""
_LOST: Final = frozenset({Reason.ASK_SETTLED, Reason.ASK_NOT_FOUND})
"""What the run says when somebody else was first, or when it has put the ask away."""


class AskService:
    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._reads = wiring.reads

    def handlers(self) -> dict[str, Handler]:
        return {
            "ListAsks": unary(self._list_asks, pb.ListAsksRequest.FromString),
            "GetAsk": unary(self._get_ask, pb.GetAskRequest.FromString),
            "WatchAsks": stream(self._watch_asks, pb.WatchAsksRequest.FromString),
            "AnswerAsk": unary(self._answer_ask, pb.AnswerAskRequest.FromString),
        }

    async def _list_asks(self, request: pb.ListAsksRequest, _context: Context) -> bytes:
        place = place_of(request, request, ignoring=("page_size",))
        which = ask_filter(request.filter)
        page = await gather(place, partial(self._reads.list_asks, which), _encode)
        rest = pb.ListAsksResponse(
            next_page_token=place.token(page.next), as_of_sequence=page.as_of_sequence
        )
        return repeated(ITEMS_TAG, page.items) + rest.SerializeToString()

    async def _get_ask(self, request: pb.GetAskRequest, _context: Context) -> bytes:
        ask = await self._find(required("ask_id", request.ask_id))
        return pb.GetAskResponse(ask=convert.ask(ask)).SerializeToString()

    async def _watch_asks(self, request: pb.WatchAsksRequest, context: Context) -> None:
        which = ask_filter(request.filter)
        resource: Resource[Ask] = Resource(
            list=partial(self._reads.list_asks, which),
            get=self._reads.get_ask,
            matches=partial(matches_ask, which=which),
            run_id=lambda ask: ask.run_id,
            encode=_encode,
        )
        with self._wiring.feed.watch_asks() as changes:
            await StateStream(self._wiring, context, changes, resource).run()

    async def _answer_ask(self, request: pb.AnswerAskRequest, context: Context) -> bytes:
        key = request_key("AnswerAsk", request, request.request_id)
        ask_id = required("ask_id", request.ask_id)
        answer = _answer(request)
        ask = await self._reads.get_ask(ask_id)
        if ask is None or ask.status is not AskStatus.OPEN:
            before = await answered_before(self._reads, key)
            if before is not None:
                return before
            raise ask_not_found(ask_id) if ask is None else _settled(ask)
        command = AnswerAsk(
            ask_id=ask_id,
            answer=answer,
            actor=actor_of(self._wiring.auth, context),
            decline=request.decline,
        )
        try:
            return await self._wiring.supervisor.command(
                ask.run_id, command, key, partial(_answered, ask_id)
            )
        except CrewdError as error:
            now = await self._reads.get_ask(ask_id) if error.reason in _LOST else None
            if now is None or now.status is AskStatus.OPEN:
                raise
            raise _settled(now) from error

    async def _find(self, ask_id: str) -> Ask:
        ask = await self._reads.get_ask(ask_id)
        if ask is None:
            raise ask_not_found(ask_id)
        return ask


def _encode(ask: Ask) -> bytes:
    return convert.ask(ask).SerializeToString()


def _answered(ask_id: str, state: RunState) -> bytes:
    return pb.AnswerAskResponse(ask=convert.ask(state.asks[ask_id])).SerializeToString()


def _answer(request: pb.AnswerAskRequest) -> Answer:
    bounded("text", request.text, TEXT_BYTES)
    bounded("note", request.note, NOTE_BYTES)
    if request.decline and (request.option_ids or request.text):
        raise invalid("decline", "goes without options and text; a reason is the `note`")
    return Answer(option_ids=tuple(request.option_ids), text=request.text, note=request.note)


def _settled(ask: Ask) -> AskSettledError:
    by = f" by {ask.answered_by.name}" if ask.answered_by else ""
    answer = ask.answer or Answer()
    said = cut(", ".join((*answer.option_ids, *filter(None, [answer.text]))), _SHOWN_BYTES)
    message = f"ask {ask.id} was settled before: {ask.status}{by}{': ' if said else ''}{said}"
    return AskSettledError(convert.ask(ask), message)
