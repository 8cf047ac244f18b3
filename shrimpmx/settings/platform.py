"""The machine that the emulated cluster stands for."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from shrimpmx.settings.declared import Declared


class PlatformParameters(Declared):
    """The machine that the emulated cluster stands for."""

    profile: Literal["none", "myri10g-2009", "shrimp-1996"] = Field(
        "none",
        description="hardware times and host costs of the coalescing paper's hosts "
        "('myri10g-2009') or of the waiting paper's ('shrimp-1996'), for parameters that are not "
        "set",
    )
    time_dilation: float | Literal["auto"] = Field(
        "auto",
        description="every time of the emulated hardware is longer by this; 'auto': as the "
        "calibration proposes for the profile, 1 without one",
    )

    @model_validator(mode="after")
    def _check(self) -> PlatformParameters:
        if self.time_dilation != "auto" and not 0.1 <= self.time_dilation <= 1000:
            raise ValueError(
                f"time_dilation must be 'auto' or from 0.1 to 1000, not {self.time_dilation:g}"
            )
        return self
