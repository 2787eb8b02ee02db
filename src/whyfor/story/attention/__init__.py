"""What a person should be told of a session: pure functions over its events and the clock."""
