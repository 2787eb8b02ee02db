"""HTTP of the team server: who asks is known before any route runs, and each route says who may."""
