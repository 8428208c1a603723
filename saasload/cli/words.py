"""Numbers and the nouns they count."""


def counted(number: int, noun: str) -> str:
    """Write a number with its noun, which is given for one.

    >>> counted(1, "call"), counted(0, "row"), counted(1_200, "company")
    ('1 call', '0 rows', '1,200 companies')
    """
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"
