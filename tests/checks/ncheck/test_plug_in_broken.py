"""NC003: a plug-in whose checks are not there is an error, since somebody relies on them."""

from __future__ import annotations

from ncheck.facts.run import BrokenPlugIn, PlugInFacts
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ncheck.plug_in_broken import plug_in_broken

BROKEN = BrokenPlugIn("paint-checks", "OSError: no brush", "python3 -m pip uninstall paint-checks")


def test_a_broken_plug_in_is_named_with_a_fix() -> None:
    judgement = judge([plug_in_broken], {"a": {PlugInFacts: PlugInFacts((BROKEN,))}})
    message = "the plug-in paint-checks is broken: OSError: no brush"
    assert judgement.findings == [
        Finding(
            "NC003",
            "plug-in-broken",
            Severity.ERROR,
            ("a",),
            message,
            (),
            "python3 -m pip uninstall paint-checks",
            where="here",
        )
    ]


def test_it_is_silent_without_plug_ins() -> None:
    assert judge([plug_in_broken], {"a": {PlugInFacts: PlugInFacts(())}}).findings == []
