"""Charts as SVG, made on the server. They take their colours from the style sheet."""
