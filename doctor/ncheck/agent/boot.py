"""Imports the agent from memory: the first thing that runs on a node once its modules have come."""

import sys
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Dict, Optional, Set


class MemoryImporter:
    """Imports modules whose text is in a dict; a name with submodules is a package."""

    def __init__(self, texts: "Dict[str, str]") -> None:
        self.texts: "Dict[str, str]" = {}
        self.packages: "Set[str]" = set()
        self.add(texts)

    def add(self, texts: "Dict[str, str]") -> None:
        """Make these modules importable."""
        self.texts.update(texts)
        self.packages.update(name.rpartition(".")[0] for name in texts)

    def find_spec(self, name: str, path: object = None, target: object = None) -> "Optional[ModuleSpec]":
        if name not in self.texts:
            return None
        return ModuleSpec(name, self, origin="ncheck", is_package=name in self.packages)  # type: ignore[arg-type]

    def create_module(self, spec: object) -> None:
        return None

    def get_source(self, name: str) -> str:
        """Return a module's text: some of them are run by other interpreters."""
        return self.texts[name]

    def exec_module(self, module: "ModuleType") -> None:
        name = module.__name__
        exec(compile(self.texts[name], "<ncheck " + name + ">", "exec"), module.__dict__)  # noqa: S102  our own text


def boot(texts: "Dict[str, str]", seconds: float) -> None:
    """Run the agent whose modules' texts these are, for that many seconds at most. Never returns."""
    sys.meta_path.insert(0, MemoryImporter(texts))
    from ncheck.agent.main import main

    main(seconds, sys.argv[1] if "shared" in sys.argv[4:] else None)
