"""Work under way that will conflict, seen before any of it lands."""
