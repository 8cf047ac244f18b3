class OtherFlow:
    frame_bytes: int
    interval_ns: float
    window: int
    def __init__(self, rate: float, frame_bytes: int, window: int = 0) -> None: ...
