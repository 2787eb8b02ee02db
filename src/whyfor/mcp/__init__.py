"""Tools for agents, over the Model Context Protocol on stdin and stdout: `protocol` knows the
messages, `loop` reads and writes them, `tools` calls one service each and renders the answer.

It is started with every session of an agent, so nothing is imported before it is needed, and the
protocol is spoken without a library."""
