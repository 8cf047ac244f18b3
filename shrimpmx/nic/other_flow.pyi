class OtherFlow:
    frame_bytes: int
    interval_ns: float
    def __init__(self, rate: float, frame_bytes: int) -> None: ...
