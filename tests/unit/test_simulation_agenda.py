"""Turns of many things, by their times and by marks."""

from __future__ import annotations

import random

import pytest

from shrimpmx.simulation.agents import Agenda


def agenda(count: int) -> Agenda:
    made = Agenda()
    assert [made.add() for _ in range(count)] == list(range(count))
    return made


def test_what_is_due_has_its_turn_once_and_in_order() -> None:
    turns = agenda(3)
    for number, due_ns in enumerate((30, 10, 20)):
        turns.due_at(number, due_ns)
    assert turns.first() == 10
    assert turns.turns(9) == []
    assert turns.turns(20) == [1, 2]
    assert turns.turns(20) == []
    assert turns.first() == 30


def test_a_time_may_be_changed_and_taken_back() -> None:
    turns = agenda(2)
    turns.due_at(0, 50)
    turns.due_at(1, 40)
    turns.due_at(0, 10)
    turns.due_at(1, None)
    assert turns.first() == 10
    assert turns.turns(100) == [0]
    assert turns.first() is None


def test_marks_of_thousands_are_found_in_order() -> None:
    turns = agenda(9000)
    marked = [8999, 0, 63, 64, 4095, 4096, 4097, 8192]
    for number in marked:
        turns.mark_one(number)
    assert turns.turns(0) == sorted(marked)
    assert turns.turns(0) == []


def test_one_that_there_is_not_is_refused() -> None:
    with pytest.raises(IndexError, match="no entry 3"):
        agenda(3).mark_one(3)


def test_turns_are_those_of_a_plain_list() -> None:
    draw = random.Random(7)
    turns, plain = agenda(200), dict[int, int]()
    for now_ns in range(0, 3000, 10):
        for _ in range(draw.randrange(6)):
            number, due_ns = draw.randrange(200), now_ns + draw.randrange(500)
            turns.due_at(number, due_ns)
            plain[number] = due_ns
        if plain and draw.random() < 0.2:
            number = draw.choice(list(plain))
            turns.due_at(number, None)
            del plain[number]
        marked = {draw.randrange(200) for _ in range(draw.randrange(3))}
        for number in [*marked, *marked]:
            turns.mark_one(number)
        due = {number for number, due_ns in plain.items() if due_ns <= now_ns}
        assert turns.turns(now_ns) == sorted(due | marked)
        for number in due:
            del plain[number]
        assert turns.first() == min(plain.values(), default=None)
