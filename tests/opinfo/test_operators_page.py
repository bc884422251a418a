from tests.opinfo.operators_page import PATH, page


def test_the_page_is_what_the_gaps_and_the_library_say() -> None:
    assert PATH.read_text() == page(), "stale: python -m tests.opinfo.operators_page"
