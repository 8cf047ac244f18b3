"""Which setting suits a program: the settings, their search by successive halving, the choice."""
