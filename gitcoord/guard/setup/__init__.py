"""The files of agent tools that setup writes and teardown cleans: settings, skills and instructions."""
