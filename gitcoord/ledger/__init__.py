"""The ledger: events, the state that follows from them, and the transaction that appends to it."""
