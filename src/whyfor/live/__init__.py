"""What runs during `serve` and `top`: the loop, live statuses, the stream."""
