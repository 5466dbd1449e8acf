"""A plain command that speaks to the daemon with the worker kit of the Python client."""

from __future__ import annotations

import asyncio

from crewd_client import InvalidRequestError, Option, Worker


async def work() -> None:
    async with await Worker.from_environment() as worker:
        await worker.progress("asking", percent=10, step="ask")
        answer = await worker.ask("How many?", options=[Option("1"), Option("2")])
        await worker.record_artifact("answer.txt", data=answer.choice.encode())
        try:
            await worker.submit(data=["not", "an", "object"])
        except InvalidRequestError as error:
            print(error.violations[0].description)  # noqa: T201
        await worker.submit(f"chose {answer.choice}", data={"count": int(answer.choice)})


asyncio.run(work())
