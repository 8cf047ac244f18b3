from shrimpmx.nic.coalescing import CoalescingPolicy
from shrimpmx.nic.policy import Policy

class PythonPolicy(CoalescingPolicy):
    policy: Policy
    def __init__(self, policy: Policy, dilation: float = 1.0) -> None: ...
