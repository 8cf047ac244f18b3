# Compiled code only: nothing here is visible from Python.
