"""docs/cases.md: every case of shared/cases has a test that shows it, or says why ours differs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "cases.md").read_text(encoding="utf-8")
IDS = frozenset(
    re.findall(
        r"\w+",
        "T01 T03 T05 T07 T09 T11 T13 T15 T17 T19 T21 T23 T25 T28 T30 T32 T34 T36 T38 T40 T42 T44"
        " T46 R01 R03 R05 R07 R09 R11 R13 R15 R17 R19 L01 L03 L05 L07 L09 L11 L13 L15"
        " A01 A03 A05 A07 A09 A11 Q01 Q03 Q05 Q07 X01 X03 X05",
    )
)
"""All 54, as shared/cases/cases.json has them."""

ROWS = dict(re.findall(r"^\| ([A-Z]\d\d) \| [^|]+ \| ([^|]+) \|$", PAGE, re.MULTILINE))


def unshown(case: str, shown: str) -> list[str]:
    """What a row names that does not show the case; `nothing` if it names nothing."""
    tests = re.findall(r"`(tests/[^`]+\.py)`", shown)
    pages = re.findall(r"\((decisions/[^)]+)\)", shown)
    named = re.compile(rf'def test_{case.lower()}_|"{case}"')
    wrong = [
        test
        for test in tests
        if not (ROOT / test).exists() or not any(named.search(text) for text in texts_of(test))
    ]
    wrong += [page for page in pages if not (ROOT / "docs" / page).exists()]
    return wrong or ([] if tests else ["nothing"])


def texts_of(test: str) -> list[str]:
    """A test's text and, where it has one, that of the cases it reads."""
    beside = (ROOT / test).with_name("cases.json")
    return [file.read_text(encoding="utf-8") for file in (ROOT / test, beside) if file.exists()]


def test_table_of_cases_has_each_case_once() -> None:
    assert set(ROWS) == IDS
    assert len(re.findall(r"^\| [A-Z]\d\d \|", PAGE, re.MULTILINE)) == len(IDS)


@pytest.mark.parametrize("case", sorted(IDS))
def test_case_is_shown_by_the_tests_that_the_table_names(case: str) -> None:
    assert unshown(case, ROWS[case]) == []


def test_case_without_a_test_of_its_name_is_found() -> None:
    here = "`tests/test_tidy.py`"
    assert unshown("Z99", here) == ["tests/test_tidy.py"]
    assert unshown("R01", "`tests/unit/nowhere.py`") == ["tests/unit/nowhere.py"]
    assert unshown("R01", "somebody says so") == ["nothing"]
