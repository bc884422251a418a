"""The `sardonyx` command."""

from sardonyx.cli.interface import app as app
from sardonyx.cli.interface import main as main
