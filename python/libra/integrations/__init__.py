"""Where Libra's attention goes into other frameworks; each module imports its own."""
