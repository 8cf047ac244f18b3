from shrimpmx.shared.agent import Agent
from shrimpmx.shared.control import Control

class Hog(Agent):
    def __init__(self, control: Control, agent: int) -> None: ...

class Spinner(Hog): ...
