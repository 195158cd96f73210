"""git's commands as functions, by topic. No module outside of `gitcoord/git` writes a command line of git.

`env` is the environment that leads git to the repository (`Repo.env`). Each function fixes git's options, so that no setting of a
user changes what the answer means. It gives an `Answer` and leaves to the caller what git's failure means there: no rule, a no, or
that it could not be judged.
"""
