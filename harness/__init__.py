"""What a clone has besides the library: training, measurements, the README's figures; not in the wheel."""
