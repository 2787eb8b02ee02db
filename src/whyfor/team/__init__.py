"""What only a team server has."""
