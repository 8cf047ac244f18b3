from collections.abc import Sequence

class Prices:
    def __init__(
        self,
        lines_ns: Sequence[Sequence[int]],
        copy_bytes_per_second: int = 0,
        handover_ns: int = 0,
        cold_packet_ns: int = 0,
        reply_ns: int = 0,
        keeps_copies: bool = False,
        poll_ns: int = 0,
        send_message_ns: int = 0,
        receive_message_ns: int = 0,
    ) -> None: ...
