"""The Python client does what all clients must do alike."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.player import play
from tests.conformance.scenarios import Scenario, all_scenarios
from tests.conformance.stage_process import StageProcess


@pytest.fixture(scope="module")
def stage() -> Iterator[StageProcess]:
    process = StageProcess()
    yield process
    assert process.close() == 0


@pytest.mark.parametrize("scenario", all_scenarios(), ids=lambda scenario: scenario.name)
async def test_scenario(scenario: Scenario, stage: StageProcess) -> None:
    await play(scenario, stage)
