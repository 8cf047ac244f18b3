from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node
from shrimpmx.wire.link import Egress, Ingress

class Port(Agent):
    node: Node
    egress: Egress
    ingress: Ingress
    def __init__(self, node: Node, egress: Egress, ingress: Ingress) -> None: ...
