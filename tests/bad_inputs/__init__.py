"""Tables of bad inputs: rows of one each, and a sweep over public signatures."""

from . import networks, studies

ROWS = networks.ROWS + studies.ROWS
