"""The parts of open pages that change, sent while they change."""
