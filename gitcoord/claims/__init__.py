"""Claims on paths and resources: taking, renewing, releasing and showing them."""
