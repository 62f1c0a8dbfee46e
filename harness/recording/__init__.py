"""The deciders that can be asked, and the recorder that keeps their answers and replays them."""
