"""Options of a method: given by name, checked before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from auditor.core.errors import ConfigError


class OptionSet(BaseModel):
    """A field is an option; its bounds and its default stand at the field."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True)
    method: ClassVar[str]

    @classmethod
    def of(cls, options: Mapping[str, object]) -> Self:
        """Read options by name; None means the default.

        Raises
        ------
        ConfigError
            An option is unknown, of the wrong kind or out of range.
        """
        known = cls.model_fields
        given = {k: v for k, v in options.items() if v is not None and (k != "data" or k in known)}
        try:
            return cls(**given)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0]) if first["loc"] else ""
            if first["type"] == "extra_forbidden":
                told = f"--method {cls.method} has no option {name!r}; options: {', '.join(sorted(known))}"
            elif not name:
                told = f"--method {cls.method}: {first['msg'].removeprefix('Value error, ')}"
            else:
                said = first["msg"].removeprefix("Value error, ").removeprefix("Input should ")
                told = f"--method {cls.method}: {name} must {said}; got {first['input']!r}"
            raise ConfigError(told) from None
