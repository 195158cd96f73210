"""The full command line, on typer."""
