from duetime.cli.terminal import printable


def test_control_characters_are_escaped() -> None:
    assert printable("a\x1b[31m\r\nb") == "a\\x1b[31m\\r\\nb"
    assert printable("abcdef", 4) == "abc…"
