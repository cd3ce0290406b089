# SPDX-License-Identifier: Apache-2.0
"""Statements of C and C++ sources: one variable a declaration if one has an initializer, and no comma operators.

Loop indices are excepted. Statements are found without a compiler, in text as clang-format leaves it: a "<" right after
a name begins template arguments.
"""
import re

# Comments, strings, preprocessor lines, and conditions of templates of files.
SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|(?<!\d)\'(?:\\.|[^\'\\\n])+\''
                     r'|^[ \t]*#(?:\\\n|[^\n])*|^@[^\n]*', re.DOTALL | re.MULTILINE)
PIECE = re.compile(r'[()\[\]{};]|[^()\[\]{};]+')
PAIRS = {'(': ')', '[': ']', '{': '}'}
# What stands before a statement: labels, and heads of statements without braces.
BEFORE = re.compile(r'\s*(?:(?:case (?:[^:]|::)+|default|public|private|protected):(?!:)|else\b'
                    r'|(?:if|for|while|switch)\b(?: constexpr)? ?\(\))')
TEMPLATE = re.compile(r'(?<=\w)<(?! )[^<>;]*>')
OTHER = re.compile(r'\s*(?:class|struct|union|enum|template|using|typedef|namespace|extern|friend|asm)\b')
SPECIFIERS = r'(?:(?:static|constexpr|constinit|const|inline|mutable|thread_local|unsigned|signed|long|short) )*'
DECLARATION = re.compile(rf'\s*(?!(?:return|throw|delete|new|co_\w+)\b){SPECIFIERS}[A-Za-z_][\w:]*(?: const)?[ *&]+\w')


def statements(text):
    """Yields (position, statement); text in brackets within a statement is left out."""
    stack = [['', 0, '']]  # an open bracket, and the statement in it so far: where it begins, its text
    for piece in PIECE.finditer(text):
        part, at = piece[0], piece.start()
        inner = stack[-1]
        if part in PAIRS:
            stack.append([part, at + 1, ''])
        elif part in PAIRS.values():
            if len(stack) > 1:
                stack.pop()
                stack[-1][2] += inner[0] + PAIRS[inner[0]]
        elif part == ';' and inner[0] in ('', '{'):
            yield inner[1], inner[2]
            inner[1:] = at + 1, ''
        elif inner[2].endswith('{}') and re.match(r'\s*[A-Za-z_~]', part):  # after a block
            inner[1:] = at, part
        else:
            inner[2] += part


def fault(statement):
    """Returns what is wrong with the statement, or None."""
    while shorter := TEMPLATE.search(statement):
        statement = statement[:shorter.start()] + statement[shorter.end():]
    if ',' not in statement or OTHER.match(statement):
        return None
    if not DECLARATION.match(statement):
        return 'a comma separates statements; end the first with ";"'
    if re.search(r'[=({]', statement):
        return 'a declaration of several variables; declare each in its line'
    return None


def check(name, text):
    text = SKIPPED.sub(lambda skipped: re.sub(r'[^\n]', ' ', skipped[0]), text)
    for at, statement in statements(text):
        while before := BEFORE.match(statement):
            at += before.end()
            statement = statement[before.end():]
        if found := fault(statement):
            line = text.count('\n', 0, at + len(statement) - len(statement.lstrip())) + 1
            yield f'{name}:{line}: {found}'
