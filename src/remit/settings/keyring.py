"""Secrets in the keyring of the system: those that were stored for Remit, and no other program's."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from remit.errors import SettingsError

SERVICE: Final = "remit"
"""The service under which secrets are stored for Remit."""


def secret(name: str, who: str) -> str:
    """Return a secret by its name. The system may ask the person for it meanwhile.

    Raises SettingsError that begins with `who`, where there is no such secret, no keyring, or no library for it.
    """
    try:
        keyring, errors = import_module("keyring"), import_module("keyring.errors")  # an extra
    except ModuleNotFoundError as error:
        msg = f"{who} needs {name} of the keyring, and {error.name} is not installed"
        raise SettingsError(msg, remedy="Install it: pip install 'remit[keyring]'") from error
    try:
        value = keyring.get_password(SERVICE, name)
    except errors.NoKeyringError as error:
        msg = f"{who} needs {name} of the keyring, and there is no keyring here"
        remedy = "Name a backend in PYTHON_KEYRING_BACKEND, or take the secret from the environment: ${NAME}."
        raise SettingsError(msg, remedy=remedy) from error
    except Exception as error:  # backends are others', and raise what they like
        msg = f"{who} needs {name} of the keyring, which does not give it: {type(error).__name__}"
        raise SettingsError(msg, remedy="Unlock the keyring, or allow Remit to read it.") from error
    if value is None:
        remedy = f"Store it: keyring set {SERVICE} {name}"
        raise SettingsError(f"{who} needs {name} of the keyring, which is not there", remedy=remedy)
    return str(value)
