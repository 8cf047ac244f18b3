from shrimpmx.link.ends import Egress, Ingress
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node

class Port(Agent):
    node: Node
    egress: Egress
    ingress: Ingress
    def __init__(self, node: Node, egress: Egress, ingress: Ingress) -> None: ...
