from __future__ import annotations

from remit.process.environment import environment, secrets_of, without
from remit.redact import MASK


def test_a_child_gets_what_programs_need_and_what_is_added_and_no_secret_of_ours() -> None:
    ours = {"PATH": "/bin", "HOME": "/home/a", "AWS_SECRET_ACCESS_KEY": "s", "PYTHONPATH": "/x"}
    assert environment(ours, {"MINE": "1", "HOME": "/other"}) == {"PATH": "/bin", "HOME": "/other", "MINE": "1"}


def test_values_are_secret_by_the_name_of_their_variable() -> None:
    env = {"API_KEY": "plain words", "DB_PASSWORD": "hunter2", "USER": "ann"}
    assert secrets_of(env) == ["plain words", "hunter2"]


def test_a_working_folder_is_no_password() -> None:
    assert secrets_of({"PWD": "/home", "OLDPWD": "/home/ann"}) == []


def test_a_value_of_a_few_characters_is_not_masked_in_every_word() -> None:
    assert secrets_of({"DB_PASSWORD": "e"}) == []


def test_of_two_secrets_the_longer_is_masked_whole() -> None:
    secrets = secrets_of({"A_TOKEN": "abcd", "B_TOKEN": "abcd-efgh"})
    assert without(secrets, "sent abcd-efgh and abcd") == f"sent {MASK} and {MASK}"
