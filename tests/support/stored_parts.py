"""Comparison of stored JSON with that of later versions."""


def is_part(stored, whole):
    """Whether `whole` has all entries of `stored`; later versions may have added settings."""
    if isinstance(stored, dict) and isinstance(whole, dict):
        return all(name in whole and is_part(value, whole[name]) for name, value in stored.items())
    return type(stored) is type(whole) and stored == whole
