"""Deploys: stale copies refused, targets serialised, results recorded and verified."""
