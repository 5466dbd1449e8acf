from __future__ import annotations

import json

import pytest

from crewd.core.output_schema import problems_of, schema_problem


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/none"},
        {"$ref": "http://127.0.0.1:1/schema"},
        {"$ref": "file:///etc/passwd"},
        {"$id": "http://here/a", "$ref": "b"},
        {"type": "no such type"},
        {"pattern": "(?=ahead)"},
        {"pattern": "("},
        {"required": "n"},
    ],
)
def test_a_schema_that_cannot_be_used_is_told_before_anything_runs(schema: object) -> None:
    assert schema_problem(json.dumps(schema))


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"properties": {"children": {"items": {"$ref": "#"}}}},
        {"pattern": "^(a+)+$"},
    ],
)
def test_a_schema_that_refers_to_itself_ends(schema: object) -> None:
    assert schema_problem(json.dumps(schema)) == ""
    assert problems_of(json.dumps(schema), json.dumps({"children": [{}]})) == ()


def test_a_pattern_that_takes_others_for_ever_takes_no_time() -> None:
    schema = json.dumps({"properties": {"a": {"pattern": "^(a+)+$"}}})

    assert problems_of(schema, json.dumps({"a": "a" * 20_000 + "!"}))[0].startswith("$.a: ")


def test_every_problem_is_told_with_its_place() -> None:
    schema = json.dumps({"required": ["n"], "properties": {"list": {"items": {"type": "number"}}}})

    told = problems_of(schema, json.dumps({"list": [1, "two"]}))

    assert told == ('$.list[1]: "two" is not of type "number"', '$: "n" is a required property')


@pytest.mark.parametrize("data", ["9" * 5000, "[" * 5000 + "]" * 5000, "{", ""])
def test_data_that_cannot_be_read_is_a_problem_and_no_error(data: str) -> None:
    assert problems_of('{"multipleOf": 0.01}', data)
