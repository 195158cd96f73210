"""The quick entry of hooks and everyday verbs: argv in, one app function called, words out."""
