"""Numbered migrations, one SQL script each."""

from importlib import resources

from duetime.domain.errors import SchemaRefused

Migration = tuple[int, str]
"""Number and script."""


def read_migrations(package: str) -> list[Migration]:
    """The scripts `NNNN_name.sql` in the package's folder `migrations`, in order."""
    scripts = sorted(
        (entry for entry in (resources.files(package) / "migrations").iterdir()),
        key=lambda entry: entry.name,
    )
    return [
        (int(script.name.split("_")[0]), script.read_text())
        for script in scripts
        if script.name.endswith(".sql")
    ]


def refuse_newer(stored: int | None, newest: int) -> None:
    if stored is not None and stored > newest:
        raise SchemaRefused(
            f"the database has schema version {stored}, but this release of Duetime knows only"
            f" version {newest}: start a newer release"
        )
