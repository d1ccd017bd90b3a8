"""The processes that a measurement needs: server, load generator, receiver."""
