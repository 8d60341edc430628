"""Whether an LLM training run fits, what it sends over which links, and how fast it will be: from its launch script.

Everything is computed by the program in this package; nothing is sent anywhere.

>>> import shardscope
>>> document = shardscope.estimate("train.sh", accelerator="H100-SXM")
>>> document["report"]["memory"]["worst"]["peak_reserved"]  # bytes
"""

from ._program import ShardscopeError, program
from ._estimate import Differences, Document, check, compare, estimate, flat, link

__all__ = [
    "Differences",
    "Document",
    "ShardscopeError",
    "check",
    "compare",
    "estimate",
    "flat",
    "link",
    "program",
]
