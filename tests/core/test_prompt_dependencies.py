from __future__ import annotations

import hashlib
from typing import Final

from crewd.core.model import Result
from crewd.core.prompt import Prompt, Spill
from crewd.core.prompt.dependencies import EACH_CHARACTERS, MOST_SHOWN, TOTAL_CHARACTERS
from crewd.core.words import TaskStatus
from tests.support.prompts import FOLDER, a_dependency, a_prompt

OVER: Final = EACH_CHARACTERS + 8_000


def place(spill: Spill) -> str:
    return f"the file {FOLDER}/{hashlib.sha256(spill.text.encode()).hexdigest()}"


def entry(prompt: Prompt, task_id: str) -> str:
    return prompt.text.partition(f"\n## Task {task_id}\n")[2].partition("\n## ")[0]


def order(prompt: Prompt) -> list[str]:
    lines = prompt.text.split("\n")
    return [line.removeprefix("## Task ") for line in lines if line.startswith("## Task ")]


def test_what_went_wrong_comes_first_then_what_is_read_then_the_rest_in_order() -> None:
    tasks = [
        a_dependency("a", "x"),
        a_dependency("b", "x"),
        a_dependency("c", "x", output="plan.md"),
        a_dependency("d", "x", status=TaskStatus.NEEDS_ATTENTION),
        a_dependency("e", "x", status=TaskStatus.FAILED),
    ]
    assert order(a_prompt(*tasks, reads=["plan.md"])) == ["d", "e", "c", "a", "b"]


def test_a_result_is_shown_whole_up_to_its_room() -> None:
    text = "x" * EACH_CHARACTERS
    prompt = a_prompt(a_dependency("a", text))

    assert f'from="result of task a">\n{text}\n</data-' in prompt.text
    assert (prompt.spills, prompt.omitted) == ((), ())


def test_a_longer_result_keeps_its_ends_and_what_stands_out_and_is_kept_whole() -> None:
    middle = "ok\n" * (OVER // 3) + "FAIL test/load.test.ts\n" + "ok\n" * (OVER // 3)
    text = f"first\n{middle}last"
    prompt = a_prompt(a_dependency("a", text))

    found = entry(prompt, "a")
    assert "\nfirst\n" in found
    assert "\nlast\n" in found
    assert "characters left out; in them:\nFAIL test/load.test.ts\n...]" in found
    assert prompt.spills == (Spill(name="a.full.txt", text=text),)
    assert f"The whole is in {place(prompt.spills[0])}." in found
    assert prompt.omitted[0].startswith("result of a: ")


def test_what_does_not_fit_is_called_omitted_and_what_is_not_there_no_result() -> None:
    full = [a_dependency(task_id, "x" * EACH_CHARACTERS) for task_id in "abc"]
    prompt = a_prompt(*full, a_dependency("d", "found x"), a_dependency("e"))

    assert "Omitted for want of room: its result, 7 characters." in entry(prompt, "d")
    assert "No result" not in entry(prompt, "d")
    assert "No result: it handed nothing in." in entry(prompt, "e")
    assert "Omitted" not in entry(prompt, "e")
    assert [spill.name for spill in prompt.spills] == ["d.full.txt"]


def test_data_is_shown_beside_the_text_and_left_out_when_it_is_long() -> None:
    short = a_dependency("a", result=Result(text="see data", data_json='{"n":1}'))
    long = '["' + "x" * EACH_CHARACTERS + '"]'
    prompt = a_prompt(short, a_dependency("b", result=Result(text="see data", data_json=long)))

    assert 'from="data (JSON) of task a">\n{"n":1}\n</data-' in prompt.text
    assert f"Omitted for want of room: its data, {len(long)} characters" in entry(prompt, "b")
    assert prompt.spills == (Spill(name="b.data.json", text=long),)


def test_data_alone_is_a_result() -> None:
    prompt = a_prompt(a_dependency("a", result=Result(data_json="[]")))

    assert "No result" not in prompt.text
    assert 'from="result of task a"' not in prompt.text
    assert 'from="data (JSON) of task a">\n[]\n' in prompt.text


def test_a_result_that_is_an_artifact_already_is_named_and_not_kept_again() -> None:
    result = Result(text="x" * OVER, truncated=True, artifact_id="art_1", sha256="ab12")
    prompt = a_prompt(a_dependency("a", result=result))

    assert f"the file {FOLDER}/ab12" in entry(prompt, "a")
    assert "of its more than 40000 characters are shown" in entry(prompt, "a")
    assert prompt.spills == ()


def test_a_result_whose_rest_was_never_kept_says_who_has_it() -> None:
    prompt = a_prompt(a_dependency("a", result=Result(text="the end", truncated=True)))

    assert "7 of its more than 7 characters are shown" in entry(prompt, "a")
    assert "which only a person can read" in entry(prompt, "a")


def test_why_a_task_did_not_complete_and_why_it_was_accepted_is_told_as_data() -> None:
    wrong = a_dependency("a", status=TaskStatus.NEEDS_ATTENTION, message="said nothing")
    accepted = a_dependency("b", "half of it")
    accepted.resolution_note = "good enough"
    prompt = a_prompt(wrong, accepted)

    assert 'from="message of task a">\nsaid nothing\n</data-' in entry(prompt, "a")
    assert 'from="message of task b">\ngood enough\n</data-' in entry(prompt, "b")


def test_an_output_that_nobody_hands_in_is_told() -> None:
    prompt = a_prompt(a_dependency("a", "x", output="plan.md"), reads=["plan.md", "notes.md"])

    assert "This task reads it as `plan.md`." in entry(prompt, "a")
    assert "Not there: this task is to read `notes.md`" in prompt.text
    assert prompt.omitted == ("output notes.md: no task before this one hands it in",)


def test_a_task_that_needs_thousands_is_given_one_list_of_those_with_no_entry() -> None:
    tasks = [a_dependency(f"t{n}", f"found {n}" if n % 2 else "") for n in range(MOST_SHOWN + 90)]
    prompt = a_prompt(*tasks)

    assert len(order(prompt)) == MOST_SHOWN
    assert "90 more tasks: 45 with a result, 45 without. Omitted for want of room" in prompt.text
    assert [spill.name for spill in prompt.spills] == ["dependencies.list.md"]
    assert f"found {MOST_SHOWN + 89}" in prompt.spills[0].text
    assert place(prompt.spills[0]) in prompt.text


def test_messages_share_the_room_of_the_results() -> None:
    wrong = TaskStatus.NEEDS_ATTENTION
    tasks = [a_dependency(f"t{n}", "", status=wrong, message="m" * 1000) for n in range(97)]
    prompt = a_prompt(*tasks)

    assert prompt.text.count("m" * 1000) == TOTAL_CHARACTERS // 1000
    assert "Omitted for want of room: its message, 1000 characters." in entry(prompt, "t96")
    assert prompt.omitted == ("message of t96: left out; 1000 characters",)


def test_data_that_is_left_out_alone_leaves_no_empty_text_behind() -> None:
    full = [a_dependency(task_id, "x" * EACH_CHARACTERS) for task_id in "abc"]
    prompt = a_prompt(*full, a_dependency("d", result=Result(data_json="[]")))

    assert prompt.spills == (Spill(name="d.data.json", text="[]"),)
    assert "Omitted for want of room: its result, 2 characters." in entry(prompt, "d")


def test_all_results_together_stay_in_their_room() -> None:
    tasks = [a_dependency(f"t{n}", "x" * 10_000) for n in range(12)]
    prompt = a_prompt(*tasks)

    assert prompt.text.count("x" * 10_000) == TOTAL_CHARACTERS // 10_000
    assert len(prompt.spills) == len(prompt.omitted) == 3


def test_escapes_are_not_shown_and_yet_kept() -> None:
    text = "\x1b[31mred\x1b[0m\x07\r\n" + "x" * OVER
    prompt = a_prompt(a_dependency("a", text))

    assert '">\nred\nxxx' in prompt.text
    assert prompt.spills[0].text == text
