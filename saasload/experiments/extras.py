"""Ask for the optional packages in one line."""

from importlib.util import find_spec

from saasload.errors import UsageError

PACKAGES = ("numpy", "scipy", "matplotlib", "trio")


def need_extras(packages: tuple[str, ...] = PACKAGES) -> None:
    """Refuse to begin without what experiments need; called before anything of it is imported."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        message = f"experiments need {', '.join(missing)}: pip install 'saasload[experiments]'"
        raise UsageError(message)
