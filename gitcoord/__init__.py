"""gitcoord: git-native coordination for many writers on one repository."""

__version__ = "0.1.0"
