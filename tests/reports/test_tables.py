from pisces.reports.tables import Cell, Table, percent_interval, summary


def test_summary_by_hand():
    assert summary([1.0, 2.0, 3.0]) == "**2.0** (1.0), n=3"
    assert summary([]) == "–"


def test_intervals_of_percentages_stay_percentages():
    assert percent_interval([1.0, 99.0], 0.95) == (0.0, 100.0)
    assert percent_interval([5.0], 0.95) is None
    assert str(Cell()) == "– / –"


def test_markdown_keeps_names_from_being_markup():
    text = Table("t", "Title", "Note.", ("method", "wide"), (("<script>|x", Cell((50.0,))),)).markdown()
    assert "<script>" not in text
    assert "&lt;script&gt;\\|x" in text
