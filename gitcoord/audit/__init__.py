"""Does gitcoord work here (`doctor`), and is the project safe for many agents (`audit`)?"""
