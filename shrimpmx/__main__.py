"""`python -m shrimpmx` is the same as `shrimpmx`."""

from shrimpmx.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
