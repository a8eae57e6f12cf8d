"""What comes in and what goes out. `source.py` and `sink.py` are the doors; everything else comes through them."""
