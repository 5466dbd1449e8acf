"""The verdict of a task that checks the work of others."""

from __future__ import annotations

import json
from typing import Final, cast

VERDICT_SCHEMA: Final = json.dumps(
    {
        "type": "object",
        "properties": {
            "verdict": {
                "enum": ["pass", "fail"],
                "description": "fail if the work misses its goal or breaks something",
            },
            "findings": {
                "type": "array",
                "items": {"type": "string"},
                "description": "what is wrong, each with its place and how it was seen",
            },
        },
        "required": ["verdict"],
    }
)
"""What such a task must hand in when it asks for nothing else."""
_SHOWN: Final = 1000


def failing(data_json: str) -> str:
    """Return why the work did not pass, for people; empty when it did."""
    data = json.loads(data_json) if data_json else None
    if not isinstance(data, dict):
        return ""
    fields = cast("dict[str, object]", data)
    if fields.get("verdict") != "fail":
        return ""
    findings = fields.get("findings")
    said = cast("list[object]", findings) if isinstance(findings, list) else []
    listed = "; ".join(map(str, said))
    return f"the verdict is fail: {listed}"[:_SHOWN] if listed else "the verdict is fail"
