"""What an agent is told: a pure function from frozen inputs to one prompt.

What is the same for many tasks comes first, so that a provider can keep it in its cache. What
other programs wrote is fenced and never rewritten; what the user wrote is given word for word.
"""

from __future__ import annotations

from crewd.core.prompt.build import task_prompt
from crewd.core.prompt.values import Prompt, Section, Spill

__all__ = ["Prompt", "Section", "Spill", "task_prompt"]
