"""Which setting suits a program: the settings, their race, the choice."""
