"""Finds the costs of hosts that explain measurements made there: `shrimpmx fit`."""
