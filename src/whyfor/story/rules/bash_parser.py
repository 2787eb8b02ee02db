"""The parser of shell commands, tree-sitter with the grammar of bash.

A hook has no time to import the packages: they import far more than they need. It loads their
two libraries by their paths, which `parser_libraries` returns beforehand.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from tree_sitter import Parser

_known: "list[Parser]" = []


def bash_parser() -> "Parser":
    """Return the parser; it is made once."""
    if not _known:
        import tree_sitter  # here: most commands need none
        import tree_sitter_bash

        language = tree_sitter.Language(tree_sitter_bash.language())
        _known.append(tree_sitter.Parser(language))
    return _known[0]


def parser_libraries() -> list[str]:
    """Return the files of the two libraries: the parser's, then the grammar's."""
    from importlib.machinery import PathFinder

    import tree_sitter
    import tree_sitter_bash

    found = []
    for package in (tree_sitter, tree_sitter_bash):
        # By its place: a module that `load_parser` made does not know its file.
        spec = PathFinder.find_spec("_binding", package.__path__)
        if spec is None or spec.origin is None:
            raise ImportError(f"{package.__name__} has no library")
        found.append(spec.origin)
    return found


def load_parser(libraries: list[str]) -> "Parser":
    """Return the parser from its libraries, without their packages. Raises if they cannot be
    loaded."""
    binding = _loaded("tree_sitter._binding", libraries[0])
    grammar = _loaded("tree_sitter_bash._binding", libraries[1])
    parser: Parser = binding.Parser(binding.Language(grammar.language()))
    return parser


def _loaded(name: str, path: str) -> "ModuleType":
    import _frozen_importlib
    import _frozen_importlib_external
    import _imp

    loader = _frozen_importlib_external.ExtensionFileLoader(name, path)
    spec = _frozen_importlib.ModuleSpec(name, loader, origin=path)
    module = _imp.create_dynamic(spec)
    _imp.exec_dynamic(module)
    return module
