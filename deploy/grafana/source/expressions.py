"""Parts of the expressions of panels."""

HERE = 'job="$job",instance=~"$instance"'
CHOSEN = f'{HERE},namespace=~"$namespace"'
# Every node reports the numbers of the whole store.
STORE_WIDE = 'job="$job",namespace=~"$namespace"'
RATE = "$__rate_interval"


def quantile(share: float, metric: str, selection: str, *by: str, window: str = RATE) -> str:
    labels = ", ".join([*by, "le"])
    return (
        f"histogram_quantile({share:g}, "
        f"sum by ({labels}) (rate({metric}_bucket{{{selection}}}[{window}])))"
    )


def per_second(metric: str, selection: str, *by: str, window: str = RATE) -> str:
    total = f"(rate({metric}{{{selection}}}[{window}]))"
    return f"sum by ({', '.join(by)}) {total}" if by else f"sum{total}"


def mean(metric: str) -> str:
    return (
        f"sum(rate({metric}_sum{{{HERE}}}[{RATE}])) / sum(rate({metric}_count{{{HERE}}}[{RATE}]))"
    )


def of_store(metric: str, *labels: str, by: str = "namespace", how: str = "max") -> str:
    selection = ",".join([STORE_WIDE, *labels])
    return f"{how}(max by ({by}) ({metric}{{{selection}}}))"
