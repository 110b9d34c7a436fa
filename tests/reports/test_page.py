"""The parts of the report page: scripts, colors, what is compared first."""

import base64
import json
import re
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored_runs import jumping_run

from pisces.experiments.jumping.experiment import Jumping
from pisces.reports.colors import PALETTE, method_color
from pisces.reports.figures import heat_map
from pisces.reports.page.bundle import bundle
from pisces.reports.page.explorer import FIRST_SCRIPTS, LAST_SCRIPTS, LIBRARIES, first_pair
from pisces.reports.page.html import asset, image, packed_json, page

PAGES = {"light": "#ffffff", "dark": "#17171a"}


def luminance(color):
    parts = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", PAGES)
def test_colors_of_methods_stand_out_in_both_themes(theme):
    assert f"{PAGES[theme]}" in re.search(r"--paper: light-dark\((.*?)\)", asset("page.css")).group(1)
    for color in PALETTE:
        assert contrast(color, PAGES[theme]) >= 3, color


def test_every_method_keeps_its_color():
    methods = Jumping.config_class.methods
    first = methods[: len(PALETTE)]
    assert len({method_color(methods, method) for method in first}) == len(first)
    assert {"randconv", "randconv+pse", "pse", "dropout+l2"} <= set(first)


def test_modules_are_bundled_in_order():
    modules = [
        "// a\nexport const one = 1;\nfunction hidden() {}\n",
        'import { one } from "./a.js";\nexport async function two() { return one; }\n',
    ]
    script = bundle(modules)
    assert "import" not in script
    assert "export" not in script
    assert script.index("const one") < script.index("async function two")


@pytest.mark.parametrize(
    "modules",
    [
        ['import { one } from "./a.js";\n', "export const one = 1;\n"],
        ["const one = 1;\n", "function one() {}\n"],
        ["const one = 1;\nconst one = 2;\n"],
    ],
)
def test_bundles_refuse_names_that_clash_or_come_too_late(modules):
    with pytest.raises(ValueError, match=r"too early|again"):
        bundle(modules)


def test_the_page_is_one_bundle_without_imports():
    script = bundle([asset(f"{name}.js") for name in (*FIRST_SCRIPTS, *LAST_SCRIPTS)])
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)


def test_libraries_keep_their_licenses():
    for name in LIBRARIES:
        assert "</script" not in asset(name)
        assert "Permission to use, copy, modify" in asset(name.replace(".min.js", ".LICENSE"))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda one: st.lists(one, max_size=4)))
def test_packed_data_cannot_end_their_element(data):
    text = packed_json(data)
    assert not set(text) & set("<>&\"'")
    assert json.loads(zlib.decompress(base64.b64decode(text))) == data


def test_pages_escape_what_they_are_given():
    bad = "<script>alert('x')</script>"
    text = page(bad, [image(heat_map([[1.0]], "t", "x", "y"), bad)])
    assert "<script>" not in text
    assert text.count("&lt;script&gt;") == 3
    assert "script-src" not in text


def groups(*runs):
    return {number: list(group) for number, group in enumerate(runs)}


def test_the_storys_methods_are_compared_first():
    many = [jumping_run("pse", seed) for seed in range(9)]
    pair = [jumping_run("randconv", 0), jumping_run("randconv", 1)], [jumping_run("randconv+pse", 0)]
    assert first_pair(Jumping(), groups(many, *pair)) == (1, 2)
    narrow = [jumping_run("randconv+pse", seed, grid="narrow") for seed in range(5)]
    assert first_pair(Jumping(), groups(narrow, many, *pair)) == (2, 3)


def test_without_the_storys_methods_two_others_are_compared():
    assert first_pair(Jumping(), groups([jumping_run("pse")])) == (0, 0)
    runs = groups([jumping_run("pse")], [jumping_run("dropout+l2", 0), jumping_run("dropout+l2", 1)])
    assert first_pair(Jumping(), runs) == (0, 1)
    apart = groups([jumping_run("pse")], [jumping_run("dropout+l2", grid="narrow")])
    assert first_pair(Jumping(), apart) == (0, 0)
