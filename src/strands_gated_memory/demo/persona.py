"""The demo's input: an invented person's memory records and a labelled conversation, from a JSON file."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ..errors import ConfigurationError
from ..retrieval.agentcore import check_template

MUST_HAVE = 2
"""The grade of a record without which the reply would be wrong, unsafe, or plainly generic."""


class PersonaRecord(BaseModel):
    """One stored record."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(min_length=1)
    namespace: str
    """A key of `Persona.namespaces`."""
    text: str = Field(min_length=1, max_length=16_000)
    """As stored; 16,000 characters is the service's limit."""


class PersonaTurn(BaseModel):
    """One message of the conversation and what it needs."""

    model_config = ConfigDict(frozen=True)

    turn: int = Field(ge=1)
    user: str = Field(min_length=1)
    needs_memory: bool
    relevant: dict[str, Literal[1, 2]] = Field(default_factory=dict)
    """Grade per record id: 2 must be in the prompt, 1 is useful."""


class Persona(BaseModel):
    """An invented person."""

    model_config = ConfigDict(frozen=True)

    name: str
    actor_id: str = Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9\-_/:]*$", max_length=255)
    namespaces: dict[str, str] = Field(min_length=1)
    """Namespace template per key."""
    records: tuple[PersonaRecord, ...] = Field(min_length=1)
    same_fact_pairs: tuple[tuple[str, str], ...] = ()
    """Records that state the same fact: either will do."""
    conversation: tuple[PersonaTurn, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _refer_to_what_exists(self) -> Persona:
        ids = [record.id for record in self.records]
        repeated = sorted({name for name in ids if ids.count(name) > 1})
        if repeated:
            raise ValueError(f"record ids are used twice: {', '.join(repeated)}")
        for template in self.namespaces.values():
            check_template(template)
            if not re.fullmatch(r"[\w/\-:{}]{1,200}", template):
                raise ValueError(
                    f"namespaces has {template[:60]!r}; a path has letters, digits, / - _ : and placeholders"
                )
        for record in self.records:
            if record.namespace not in self.namespaces:
                raise ValueError(
                    f"record {record.id!r} has the namespace {record.namespace!r}; "
                    f"namespaces has {', '.join(map(repr, self.namespaces))}"
                )
        named = {f"turn {turn.turn}": turn.relevant for turn in self.conversation}
        named["same_fact_pairs"] = {name: 2 for pair in self.same_fact_pairs for name in pair}
        for place, names in named.items():
            for name in names:
                if name not in ids:
                    raise ValueError(f"{place} names the record {name!r}, which does not exist")
        return self

    def template(self, key: str) -> str:
        """Return a namespace's template with one slash at its end."""
        return self.namespaces[key].rstrip("/") + "/"


def load_persona(path: Path | None) -> Persona:
    """Read a persona file.

    Args:
        path: A JSON file; None reads the one that ships.

    Raises:
        ConfigurationError: The file cannot be read, is not JSON, or a field of it is wrong; says which.
    """
    source = files("strands_gated_memory") / "data" / "persona.json" if path is None else path
    try:
        return Persona.model_validate_json(source.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"persona file {source}: cannot be read: {error}") from error
    except ValidationError as error:
        raise ConfigurationError(f"persona file {source}: {_problems(error)}") from error


def _problems(error: ValidationError) -> str:
    shown = [
        f"{'.'.join(map(str, problem['loc'])) or 'the whole'}: {problem['msg'].removeprefix('Value error, ')}"
        for problem in error.errors()[:5]
    ]
    more = error.error_count() - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")
