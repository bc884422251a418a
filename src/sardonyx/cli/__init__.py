"""The `sardonyx` command."""

from sardonyx.cli.app import app as app
from sardonyx.cli.app import main as main
