"""git's hooks on the client: installed beside those of others, and taken out again."""
