"""Numbers in words, for templates."""

CAP = 10_000
"""Above this number a count is not worth its cost: "10,000+"."""


def number(count: float) -> str:
    """1234567 as "1,234,567"."""
    return f"{count:,}"


def capped(count: int, cap: int = CAP) -> str:
    return f"{cap:,}+" if count > cap else f"{count:,}"


def quick(ms: float) -> str:
    """A duration that may be short: "0.4 ms", "41 ms" or "1.2 s"."""
    if ms < 9.95:
        return f"{ms:.1f} ms"
    return f"{ms:.0f} ms" if ms < 999.5 else f"{ms / 1_000:.1f} s"


def percent(share: float) -> str:
    """0.0123 as "1.2 %"."""
    value = share * 100
    return f"{value:.0f} %" if value >= 10 or value == 0 else f"{value:.1f} %"
