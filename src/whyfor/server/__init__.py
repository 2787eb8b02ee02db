"""What a browser and scripts see: an HTTP API, a live stream and pages, on this machine only."""
