"""What runs while somebody watches: the loop, live statuses, the stream."""
