"""Writers of synthetic session files, one module for each agent's format."""
