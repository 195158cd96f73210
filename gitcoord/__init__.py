"""gitcoord: git-native coordination for many writers on one repository."""

from __future__ import annotations

__version__ = "0.1.0"
