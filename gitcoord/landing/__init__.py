"""Landing: bringing a branch onto trunk, one at a time, checked, judged and on record."""
