"""Resends of packets that were lost: for tests that count packets exactly.

No machine is so busy that an acknowledgement takes ten seconds: what is sent again was lost.
"""

from __future__ import annotations

from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.mx import MxParameters

RESEND_DELAY_NS = 10_000_000_000
SETTINGS = (f"resend_delay_ns={RESEND_DELAY_NS}", f"pull_resend_delay_ns={RESEND_DELAY_NS}")
MX = MxParameters(resend_delay_ns=RESEND_DELAY_NS)
HOST = HostParameters(pull_resend_delay_ns=RESEND_DELAY_NS)
