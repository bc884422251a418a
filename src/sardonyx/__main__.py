"""`python -m sardonyx` is the `sardonyx` command."""

from sardonyx.cli.interface import main

main()
