"""`python -m sardonyx` is the `sardonyx` command."""

from sardonyx.cli.app import main

main()
