"""A tiny program to build, test and release."""


def greet(name: str) -> str:
    return f"Hello, {name}!"
