"""Everything that Whyfor needs from git: identity, history, patches, hooks, the work tree."""
